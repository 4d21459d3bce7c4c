const std = @import("std");
const jobhost = @import("jobhost.zig");
const expectEqual = std.testing.expectEqual;
const expectEqualStrings = std.testing.expectEqualStrings;
const expectError = std.testing.expectError;
const run = jobhost.testing.run;

fn failing(job: *jobhost.Job) ![]const u8 {
    if (std.mem.eql(u8, job.input, "permanent")) return job.permanent("no \"{s}\"", .{"field"});
    if (std.mem.eql(u8, job.input, "snooze")) return job.snooze(1500);
    if (std.mem.eql(u8, job.input, "all")) return job.fail(.{
        .message = "a\nb",
        .code = "quota",
        .category = .resource,
        .severity = .@"error",
        .context = "{\"account\":7}",
    });
    return error.Odd;
}

test "failures" {
    const cases = [_]struct { []const u8, i32, []const u8 }{
        .{ "permanent", 2, "{\"message\":\"no \\\"field\\\"\"}" },
        .{ "snooze", 3, "1500ms" },
        .{ "all", 1, "{\"message\":\"a\\nb\",\"code\":\"quota\",\"category\":\"resource\",\"severity\":\"error\",\"context\":{\"account\":7}}" },
        .{ "", 1, "{\"message\":\"Odd\"}" },
    };
    for (cases) |case| {
        var got = try run(failing, .{ .input = case[0] });
        defer got.deinit();
        try expectEqual(case[1], got.failed.?.kind);
        try expectEqualStrings(case[2], got.failed.?.text);
    }
}

fn telling(job: *jobhost.Job) !void {
    try job.output("first ");
    job.log(.info, "n={d}", .{1});
    job.log(.debug, "not kept", .{});
    try job.emit("news");
    job.progress(1, 2);
    try job.counter("hits", .{ .path = "a\"b\\c\n", .code = "200" }).add(1);
    try job.gauge("level", .{}).set(-0.5);
    try job.setState("half", 50, "half", "");
    try job.output(try job.print("{d} {?d}", .{ (try job.getState(.{ .tag = "half" })).status, job.remaining() }));
}

test "what a job tells" {
    var got = try run(telling, .{});
    defer got.deinit();
    try expectEqualStrings("first 50 null", got.output);
    try expectEqual(1, got.logs.items.len);
    try expectEqualStrings("0 n=1", got.logs.items[0]);
    try expectEqualStrings("news", got.emitted.items[0]);
    try expectEqualStrings("1 hits{path=\"a\\\"b\\\\c\\n\",code=\"200\"}", got.metrics.items[0]);
    try expectEqualStrings("2 level", got.metrics.items[1]);
    try expectEqualStrings("half 50 half ", got.states.items[0]);
}

fn knowing(job: *jobhost.Job) ![]const u8 {
    try expectEqual(2, job.task());
    try expectEqualStrings("Ulm", (try job.config("city")).?);
    try expectEqual(null, job.label("none"));
    try expectError(error.Denied, job.secret("key"));
    try expectError(error.NotFound, job.info("nonsense"));
    return job.info("config.wide");
}

test "what a job knows" {
    const wide = "wide " ** 1000;
    var got = try run(knowing, .{ .info = &.{
        .{ .name = "job.task", .value = "2" }, .{ .name = "config.city", .value = "Ulm" }, .{ .name = "config.wide", .value = wide },
    } });
    defer got.deinit();
    try expectEqualStrings(wide, got.output);
}

fn keeping(job: *jobhost.Job) !void {
    const kv = job.kv();
    try expectEqual(null, kv.get("none"));
    try expectEqual(42, kv.add("n", 1));
    try expectError(error.Invalid, kv.add("text", 1));
    try kv.compareAndSet("text", try kv.version("text"), "new");
    try expectError(error.Conflict, kv.compareAndSet("text", 12345, ""));
    try kv.delete("old");
}

test "keys and values" {
    var got = try run(keeping, .{ .keys = &.{
        .{ .name = "n", .value = "41" }, .{ .name = "text", .value = "old" }, .{ .name = "old", .value = "" },
    } });
    defer got.deinit();
    try expectEqual(null, got.failed);
    try expectEqual(2, got.keys.count());
    try expectEqualStrings("new", got.keys.get("text").?);
}

fn submitting(job: *jobhost.Job) !void {
    const spec: jobhost.Spec = .{
        .worker = "w",
        .payload = "a\n\nb",
        .delay_ms = 1500,
        .tasks = 2,
        .labels = &.{.{ .name = "team", .value = "" }},
    };
    try expectEqualStrings("child.1", try job.submit(spec));
    try expectEqualStrings("child.2", (try job.submitNow(.{ .worker = "w" })).id);
    try expectError(error.Invalid, job.submit(.{ .worker = "w\nid: x" }));
    _ = try job.deferRequest(.{ .url = "http://a" }, "done", "args");
}

test "jobs" {
    var got = try run(submitting, .{});
    defer got.deinit();
    try expectEqual(null, got.failed);
    try expectEqualStrings("0 worker: w\ndelay: 1500ms\ntasks: 2\nlabel.team: \n\na\n\nb", got.submitted.items[0]);
    try expectEqualStrings("1 worker: w\n\n", got.submitted.items[1]);
    try expectEqualStrings("done args GET http://a\n\n", got.deferred.items[0]);
}

fn answer(request: []const u8) []const u8 {
    if (std.mem.indexOf(u8, request, "/none") != null) return "0\nerror: dns\n\nno such name";
    if (std.mem.indexOf(u8, request, "/bad") != null) return "nonsense";
    if (std.mem.indexOf(u8, request, "/bare") != null) return "204\n\n";
    return "201\na: x\ncontent-type: text/plain\n\nbody\n\nmore";
}

fn fetching(job: *jobhost.Job) !void {
    const r = try job.fetch(.{ .url = "http://a", .method = "POST", .header = &.{.{ .name = "a", .value = "1" }}, .body = "x\ny" });
    try expectEqual(201, r.status);
    try expectEqualStrings("text/plain", r.header("content-type").?);
    try expectEqual(null, r.header("content"));
    try expectEqualStrings("body\n\nmore", r.body);
    const none = try job.fetch(.{ .url = "http://a/none" });
    try expectEqual(0, none.status);
    try expectEqualStrings("dns", none.reason);
    const bare = try job.fetch(.{ .url = "http://a/bare" });
    try expectEqual(true, bare.ok());
    try expectEqualStrings("", bare.head);
    try expectError(error.Invalid, job.fetch(.{ .url = "http://a/bad" }));
    try expectError(error.Invalid, job.fetch(.{ .url = "http://a\nb: c" }));
    try expectError(error.Invalid, job.fetch(.{ .url = "http://a", .method = "GET http://b" }));
    try expectError(error.Invalid, job.fetch(.{ .url = "http://a", .header = &.{.{ .name = "a:b", .value = "" }} }));
    try expectError(error.Invalid, job.fetch(.{ .url = "http://a", .header = &.{.{ .name = "a", .value = "\r" }} }));
    const late = try job.timer(10);
    try expectEqual(0, job.wait(null, &.{late}));
}

test "HTTP" {
    var got = try run(fetching, .{ .http = answer });
    defer got.deinit();
    try expectEqual(null, got.failed);
    try expectEqualStrings("POST http://a\na: 1\n\nx\ny", got.requests.items[0]);
}

fn replied(job: *jobhost.Job) ![]const u8 {
    const reply = try job.parseReply();
    return job.print("{s} {s} {d} {s}", .{ reply.id, reply.args, reply.response.status, reply.response.body });
}

test "replies" {
    var got = try run(replied, .{ .input = "200\njobhost-args: Zm9yIGxhdGVy\njobhost-request: r7\n\nbody" });
    defer got.deinit();
    try expectEqualStrings("r7 for later 200 body", got.output);
    for ([_][]const u8{ "{}", "200\n\nbody", "200\njobhost-args: !\njobhost-request: r\n\n", "200\njobhost-args: \n\n" }) |input| {
        var none = try run(replied, .{ .input = input });
        defer none.deinit();
        try expectEqualStrings("{\"message\":\"Invalid\"}", none.failed.?.text);
    }
}

fn listening(job: *jobhost.Job) !void {
    var memory: std.heap.ArenaAllocator = .init(std.testing.allocator);
    defer memory.deinit();
    var turn = job.with(memory.allocator());
    while (try turn.recv()) |message| {
        try turn.emit(message);
        _ = memory.reset(.retain_capacity);
    }
}

test "messages" {
    var got = try run(listening, .{ .messages = &.{ "one", "", "three" } });
    defer got.deinit();
    try expectEqual(null, got.failed);
    try expectEqual(3, got.emitted.items.len);
    try expectEqualStrings("three", got.emitted.items[2]);
}

fn watching(job: *jobhost.Job) ![]const u8 {
    const watch = try job.watchState(.{ .task = 3, .tag = "a" });
    const before = try watch.next(job);
    const all = try watch.next(job);
    const after = try watch.next(job);
    try expectError(error.InputOutput, watch.next(job));
    try expectError(error.Closed, watch.next(job));
    try expectEqual(true, before.replay and all.sentinel and !after.replay and !after.sentinel);
    try expectEqual(5, after.state.payload.?.object.get("rows").?.integer);
    return after.state.message;
}

test "states" {
    var got = try run(watching, .{ .messages = &.{
        "{\"state\":{\"status\":5},\"replay\":true}",
        "{\"replay\":true,\"sentinel\":true}",
        "{\"state\":{\"job\":\"j\",\"task\":3,\"tag\":\"a\",\"status\":-7,\"message\":\"\\u003ch\\n\",\"timestamp\":\"2026-11-22T09:00:00Z\",\"version\":2,\"event_id\":\"e\",\"payload\":{\"rows\":5},\"schema_version\":1},\"replay\":false}",
        "nonsense",
    } });
    defer got.deinit();
    try expectEqualStrings("<h\n", got.output);
}

fn reading(job: *jobhost.Job) ![]const u8 {
    try job.histogram("size", .{ .unit = "byte" }).observe(7);
    const child = try job.submitNow(.{ .worker = "w", .priority = "high", .max_attempts = 3, .timeout_ms = 5000 });
    const late = try job.timer(1);
    try expectEqual(0, job.wait(0, &.{ late, child.handle, try job.inbox() }));
    job.drop(late);
    try expectEqual(7, job.remaining());
    try job.kv().set("k", "v", 1000);
    return job.print("{s} {d}/{d} {d} {s} {s} {s} {s} {?s}", .{
        try job.id(),     try job.task(),  try job.tasks(),       try job.attempt(),     try job.priority(),
        try job.worker(), try job.trace(), try job.secret("key"), try job.label("team"),
    });
}

test "everything else" {
    std.testing.refAllDecls(jobhost.Job);
    std.testing.refAllDecls(jobhost.KV);
    std.testing.refAllDecls(jobhost.Watch);
    var got = try run(reading, .{ .remaining = 7, .info = &.{
        .{ .name = "job.id", .value = "j1" },     .{ .name = "job.task", .value = "2" },        .{ .name = "job.tasks", .value = "3" },
        .{ .name = "job.attempt", .value = "4" }, .{ .name = "job.priority", .value = "high" }, .{ .name = "worker", .value = "w" },
        .{ .name = "trace", .value = "wf-1" },    .{ .name = "secret.key", .value = "s3" },     .{ .name = "label.team", .value = "red" },
    } });
    defer got.deinit();
    try expectEqual(null, got.failed);
    try expectEqualStrings("j1 2/3 4 high w wf-1 s3 red", got.output);
    try expectEqualStrings("3 size{unit=\"byte\"}", got.metrics.items[0]);
    try expectEqualStrings("1 worker: w\npriority: high\ntimeout: 5000ms\nmax_attempts: 3\n\n", got.submitted.items[0]);
}

fn drawing(job: *jobhost.Job) ![]const u8 {
    return job.print("{x}", .{job.random().int(u64)});
}

test "random numbers" {
    var one = try run(drawing, .{});
    defer one.deinit();
    var other = try run(drawing, .{});
    defer other.deinit();
    try expectEqual(false, std.mem.eql(u8, one.output, other.output));
}
