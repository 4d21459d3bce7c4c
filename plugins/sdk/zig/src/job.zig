const std = @import("std");
const host = @import("host.zig");
const abi = host.abi;
const Error = host.Error;
const Failure = @import("fail.zig").Failure;
const http = @import("http.zig");
const state = @import("state.zig");
const submitting = @import("submit.zig");
const waiting = @import("wait.zig");
const KV = @import("kv.zig").KV;

/// Job is the attempt under way and all that it may ask of the host. It and whatever its
/// methods return are valid until the handler returns.
pub const Job = struct {
    /// input is the payload. It may be changed.
    input: []u8,
    /// arena is memory for this job: there is nothing to free.
    arena: std.mem.Allocator,

    /// with returns the job with other memory, for fibers, which have no end: they reset it
    /// after each message.
    pub fn with(job: *Job, memory: std.mem.Allocator) Job {
        return .{ .input = job.input, .arena = memory };
    }

    // ---- The result, and how the attempt ends

    /// print makes a text, such as the result.
    pub fn print(job: *Job, comptime format: []const u8, args: anytype) Error![]u8 {
        return std.fmt.allocPrint(job.arena, format, args);
    }

    /// output appends to the result, before what the handler returns.
    pub fn output(_: *Job, data: []const u8) Error!void {
        try host.ok(abi.output(data.ptr, data.len));
    }

    /// Failed is what a handler returns that has said itself why the attempt ends.
    pub const Failed = error{Failed};

    /// fail fails the attempt: return job.fail(.{ .message = "no quota", .code = "quota" }).
    pub fn fail(job: *Job, failure: Failure) Failed {
        var text: std.Io.Writer.Allocating = .init(job.arena);
        failure.write(&text.writer) catch return say(1, "out of memory");
        return say(if (failure.permanent) 2 else 1, text.written());
    }

    /// permanent fails the attempt for good: return job.permanent("no field {s}", .{name}).
    pub fn permanent(job: *Job, comptime format: []const u8, args: anytype) Failed {
        return job.fail(.{ .message = job.print(format, args) catch format, .permanent = true });
    }

    /// retry fails the attempt, which is tried again as the worker's retry policy says. Any
    /// other error does so too, with its name as the message.
    pub fn retry(job: *Job, comptime format: []const u8, args: anytype) Failed {
        return job.fail(.{ .message = job.print(format, args) catch format });
    }

    /// snooze lets the job run again after some milliseconds; the attempt doesn't count.
    pub fn snooze(_: *Job, ms: u64) Failed {
        var text: [32]u8 = undefined;
        return say(3, std.fmt.bufPrint(&text, "{d}ms", .{ms}) catch unreachable);
    }

    fn say(kind: i32, text: []const u8) Failed {
        _ = abi.fail(kind, text.ptr, text.len);
        return error.Failed;
    }

    /// failedWith fails the attempt with an error that a handler has returned.
    pub fn failedWith(job: *Job, err: anyerror) void {
        const failure: Failure = switch (err) {
            error.Failed => return, // it was said
            error.OutOfMemory => .{ .message = "out of memory", .code = "out_of_memory", .category = .resource },
            else => .{ .message = @errorName(err) },
        };
        job.fail(failure) catch {};
    }

    // ---- What the job knows

    /// info returns what the host knows by a key of docs/abi.md. Errors: NotFound, and
    /// Denied for secrets that are not granted.
    pub fn info(job: *Job, key: []const u8) Error![]const u8 {
        return host.fill(job.arena, abi.info, .{ key.ptr, key.len });
    }

    pub fn id(job: *Job) Error![]const u8 {
        return job.info("job.id");
    }

    /// task returns which of the job's partitions this is, from 0; tasks how many it has.
    pub fn task(job: *Job) Error!u31 {
        return job.number("job.task");
    }

    pub fn tasks(job: *Job) Error!u31 {
        return job.number("job.tasks");
    }

    /// attempt returns which attempt this is, from 1.
    pub fn attempt(job: *Job) Error!u31 {
        return job.number("job.attempt");
    }

    /// priority is critical, high, normal, low or background.
    pub fn priority(job: *Job) Error![]const u8 {
        return job.info("job.priority");
    }

    /// worker returns the worker's name.
    pub fn worker(job: *Job) Error![]const u8 {
        return job.info("worker");
    }

    /// trace returns the workflow that the job is a step of, or "".
    pub fn trace(job: *Job) Error![]const u8 {
        return job.info("trace");
    }

    fn number(job: *Job, key: []const u8) Error!u31 {
        return std.fmt.parseInt(u31, try job.info(key), 10) catch error.InputOutput;
    }

    /// config returns a value of the worker's config in the manifest; null = there is none.
    pub fn config(job: *Job, name: []const u8) Error!?[]const u8 {
        return job.named("config.", name);
    }

    /// label returns a label of the job.
    pub fn label(job: *Job, name: []const u8) Error!?[]const u8 {
        return job.named("label.", name);
    }

    fn named(job: *Job, group: []const u8, name: []const u8) Error!?[]const u8 {
        return job.info(try job.print("{s}{s}", .{ group, name })) catch |err| switch (err) {
            error.NotFound => null,
            else => err,
        };
    }

    /// secret returns a secret that the manifest grants; error Denied for any other.
    pub fn secret(job: *Job, name: []const u8) Error![]const u8 {
        return job.info(try job.print("secret.{s}", .{name}));
    }

    /// remaining returns the milliseconds left: null without a deadline, 0 when the attempt
    /// must end now. Who works for long asks now and then, and returns on 0.
    pub fn remaining(_: *Job) ?u63 {
        const ms = abi.remaining();
        return if (ms == -1) null else @intCast(@max(ms, 0));
    }

    /// random returns random numbers of the host, fit for keys. Each is a call of the host:
    /// who needs many seeds a generator of std.Random with it, in the job.
    pub fn random(_: *Job) std.Random {
        return .{ .ptr = undefined, .fillFn = struct {
            fn fill(_: *anyopaque, bytes: []u8) void {
                if (abi.random_get(bytes.ptr, bytes.len) != 0) @panic("the host has no random bytes");
            }
        }.fill };
    }

    // ---- What the job tells

    /// log writes a line to the job's log, as std.log does.
    pub fn log(_: *Job, comptime level: std.log.Level, comptime format: []const u8, args: anytype) void {
        logLine(level, format, args);
    }

    pub fn logLine(comptime level: std.log.Level, comptime format: []const u8, args: anytype) void {
        const severity: i32 = switch (level) {
            .debug => -4,
            .info => 0,
            .warn => 4,
            .err => 8,
        };
        if (severity < abi.log_level()) return;
        var line: [9 << 10]u8 = undefined; // the host keeps 8 KiB, unless the manifest says otherwise
        var w: std.Io.Writer = .fixed(&line);
        w.print(format, args) catch {}; // what is there is told
        const text = w.buffered();
        abi.log(severity, text.ptr, text.len);
    }

    /// emit publishes data to whoever watches the job, at once.
    pub fn emit(_: *Job, data: []const u8) Error!void {
        try host.ok(abi.emit(data.ptr, data.len));
    }

    /// progress says how far the attempt is; total 0 = unknown.
    pub fn progress(_: *Job, done: u63, total: u63) void {
        abi.progress(done, total);
    }

    /// counter returns a metric of the worker's own that only gets more, with labels:
    /// job.counter("requests", .{ .code = "200" }).add(1). Errors come with its use, and may
    /// be ignored.
    pub fn counter(job: *Job, name: []const u8, labels: anytype) struct {
        id: Error!i32,

        pub fn add(m: @This(), n: f64) Error!void {
            try host.ok(abi.observe(try m.id, n));
        }
    } {
        return .{ .id = job.metric(1, name, labels) };
    }

    /// gauge returns a metric that goes up and down.
    pub fn gauge(job: *Job, name: []const u8, labels: anytype) struct {
        id: Error!i32,

        pub fn set(m: @This(), value: f64) Error!void {
            try host.ok(abi.observe(try m.id, value));
        }
    } {
        return .{ .id = job.metric(2, name, labels) };
    }

    /// histogram returns a metric that shows how values are spread.
    pub fn histogram(job: *Job, name: []const u8, labels: anytype) struct {
        id: Error!i32,

        pub fn observe(m: @This(), value: f64) Error!void {
            try host.ok(abi.observe(try m.id, value));
        }
    } {
        return .{ .id = job.metric(3, name, labels) };
    }

    fn metric(job: *Job, kind: i32, name: []const u8, labels: anytype) Error!i32 {
        var text: std.ArrayList(u8) = .empty;
        try text.appendSlice(job.arena, name);
        inline for (@typeInfo(@TypeOf(labels)).@"struct".fields, 0..) |field, i| {
            try text.print(job.arena, "{c}{s}=\"", .{ if (i == 0) '{' else ',', field.name });
            for (@as([]const u8, @field(labels, field.name))) |c| switch (c) {
                '"', '\\' => try text.print(job.arena, "\\{c}", .{c}),
                '\n' => try text.appendSlice(job.arena, "\\n"),
                else => try text.append(job.arena, c),
            };
            try text.append(job.arena, '"');
        }
        if (text.items.len > name.len) try text.append(job.arena, '}');
        return host.checked(abi.metric(kind, text.items.ptr, text.items.len));
    }

    // ---- What leaves the sandbox: each in a file of its own

    /// kv returns the keys and values of the worker.
    pub fn kv(job: *Job) KV {
        return .{ .arena = job.arena };
    }

    pub const submit = submitting.submit;
    pub const submitNow = submitting.submitNow;

    pub const timer = waiting.timer;
    pub const wait = waiting.wait;
    pub const read = waiting.read;
    pub const drop = waiting.drop;
    pub const inbox = waiting.inbox;
    pub const recv = waiting.recv;

    pub const send = http.send;
    pub const receive = http.receive;
    pub const fetch = http.fetch;
    pub const deferRequest = http.deferRequest;
    pub const parseReply = http.parseReply;

    pub const setState = state.setState;
    pub const getState = state.getState;
    pub const watchState = state.watchState;
};
