//! conform uses each part of the SDK, so that the suite of all SDKs can see it arrive at
//! the host. Each entry is one case: see plugins/sdk/sdktest.

const std = @import("std");
const jobhost = @import("jobhost");
const Job = jobhost.Job;

pub const panic = jobhost.panic;
pub const std_options = jobhost.std_options;

comptime {
    jobhost.entry("jh_run", upper);
    jobhost.entry("echo", echo);
    jobhost.entry("info", info);
    jobhost.entry("log", log);
    jobhost.entry("fail", fail);
    jobhost.entry("retry", retry);
    jobhost.entry("snooze", snooze);
    jobhost.entry("panic", panics);
    jobhost.entry("count", count);
    jobhost.entry("keep", keep);
    jobhost.entry("swap", swap);
    jobhost.entry("fetch", fetch);
    jobhost.entry("race", race);
    jobhost.entry("timeout", timeout);
    jobhost.entry("child", child);
    jobhost.entry("spread", spread);
    jobhost.entry("defer", later);
    jobhost.entry("inbox", inbox);
    jobhost.entry("draw", draw);
    jobhost.entry("fresh", fresh);
}

fn upper(job: *Job) []const u8 {
    for (job.input) |*c| c.* = std.ascii.toUpper(c.*);
    return job.input;
}

fn echo(job: *Job) []const u8 {
    return job.input;
}

fn info(job: *Job) ![]const u8 {
    return job.info(job.input) catch |err| switch (err) {
        error.NotFound => "none",
        error.Denied => "denied",
        else => err,
    };
}

fn log(job: *Job) void {
    job.log(.info, "{s}", .{job.input});
    std.log.debug("debugging", .{});
}

fn fail(job: *Job) ![]const u8 {
    return job.fail(.{
        .message = job.input,
        .code = "bad_input",
        .category = .validation,
        .context = "{\"seen\":true}",
        .permanent = true,
    });
}

fn retry(job: *Job) ![]const u8 {
    return job.retry("{s}", .{job.input});
}

fn snooze(job: *Job) ![]const u8 {
    return job.snooze(1500);
}

fn panics(_: *Job) void {
    @panic("boom");
}

fn count(job: *Job) ![]const u8 {
    return job.print("{d}", .{try job.kv().add("count", 1)});
}

fn keep(job: *Job) ![]const u8 {
    if (try job.kv().get("k")) |value| return value;
    try job.kv().set("k", job.input, 0);
    return "";
}

fn swap(job: *Job) ![]const u8 {
    const kv = job.kv();
    try kv.compareAndSet("k", try kv.version("k"), job.input);
    kv.compareAndSet("k", 12345, "") catch |err| return if (err == error.Conflict) "ok conflict" else err;
    return "ok";
}

fn fetch(job: *Job) ![]const u8 {
    const r = try job.fetch(.{ .url = job.input });
    if (r.status == 0) return job.print("error: {s}", .{r.reason});
    return job.print("{d} {s}", .{ r.status, r.body });
}

fn race(job: *Job) ![]const u8 {
    const one, const other = std.mem.cutScalar(u8, job.input, ' ') orelse return error.NoURLs;
    const calls = [_]jobhost.Handle{ try job.send(.{ .url = one }), try job.send(.{ .url = other }) };
    const winner = (try job.wait(null, &calls)).?;
    job.drop(calls[1 - winner]);
    return (try job.receive(calls[winner])).body;
}

fn timeout(job: *Job) ![]const u8 {
    _ = try job.wait(null, &.{try job.timer(10)});
    return "late";
}

fn child(job: *Job) ![]const u8 {
    return job.submit(.{ .worker = "other", .payload = job.input });
}

fn spread(job: *Job) ![]const u8 {
    job.progress(1, 2);
    try job.counter("seen", .{}).add(1);
    try job.emit(job.input);
    try job.setState("half", 50, "half", "");
    const state = try job.getState(.{ .task = try job.task(), .tag = "half" });
    return job.print("{d}", .{state.status});
}

fn later(job: *Job) !void {
    _ = try job.deferRequest(.{ .url = job.input }, "echo", "args");
}

fn inbox(job: *Job) ![]const u8 {
    return try job.recv() orelse error.NothingSent;
}

fn draw(job: *Job) ![]const u8 {
    return job.print("{x:0>16}", .{job.random().int(u64)});
}

var calls_so_far: u32 = 0;

fn fresh(job: *Job) ![]const u8 {
    calls_so_far += 1;
    return job.print("{d}", .{calls_so_far});
}
