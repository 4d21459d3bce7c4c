//! A host that is nothing but memory, so that handlers run under `zig test`:
//!
//!     var got = try jobhost.testing.run(handler, .{ .input = "Ada" });
//!     defer got.deinit();
//!     try std.testing.expectEqualStrings("hello, Ada", got.output);
//!
//! No time passes: timers are ready at once, and so is what a function answers.

const std = @import("std");
const jobhost = @import("jobhost.zig");
const Field = jobhost.Field;

/// Attempt is what a handler is given.
pub const Attempt = struct {
    input: []const u8 = "",
    /// info is what the host knows, by the keys of docs/abi.md, such as config.city.
    info: []const Field = &.{},
    /// keys are the worker's keys and values.
    keys: []const Field = &.{},
    /// http answers requests, both as texts of docs/abi.md; null = denied.
    http: ?*const fn (request: []const u8) []const u8 = null,
    /// messages are what a fiber is sent.
    messages: []const []const u8 = &.{},
    /// state is what state_get answers, as JSON; null = what the attempt has set itself.
    state: ?[]const u8 = null,
    /// remaining is the milliseconds left; -1 = there is no deadline.
    remaining: i64 = -1,
};

/// Result is what a handler did.
pub const Result = struct {
    arena: std.heap.ArenaAllocator,
    output: []const u8 = "",
    /// failed is the last call of fail: kind 1 retryable, 2 permanent, 3 snooze.
    failed: ?struct { kind: i32, text: []const u8 } = null,
    logs: List = .empty, // "LEVEL TEXT"
    emitted: List = .empty,
    metrics: List = .empty, // "KIND NAME"
    submitted: List = .empty, // "WHEN TEXT"
    requests: List = .empty,
    deferred: List = .empty, // "ENTRY ARGS TEXT"
    states: List = .empty, // "TAG STATUS MESSAGE PAYLOAD"
    keys: std.StringArrayHashMapUnmanaged([]const u8) = .empty,

    pub const List = std.ArrayList([]const u8);

    /// deinit frees all of it.
    pub fn deinit(r: *Result) void {
        r.arena.deinit();
    }
};

/// run runs a handler as the host does.
pub fn run(comptime handler: anytype, attempt: Attempt) !Result {
    given = attempt;
    did = .{ .arena = .init(std.heap.page_allocator) };
    answers = .empty;
    received = 0;
    errdefer did.deinit();
    for (attempt.keys) |key| try did.keys.put(memory(), copy(key.name), copy(key.value));
    const result = jobhost.run(try memory().dupe(u8, attempt.input), handler) orelse "";
    did.output = try std.mem.concat(memory(), u8, &.{ did.output, result });
    return did;
}

var given: Attempt = .{};
var did: Result = undefined;
var answers: Result.List = .empty; // by their handles
var received: usize = 0;
const inbox = 1 << 20;

fn memory() std.mem.Allocator {
    return did.arena.allocator();
}

fn copy(text: []const u8) []const u8 {
    return memory().dupe(u8, text) catch @panic("out of memory");
}

/// note adds what it makes to a list, and returns how many there are.
fn note(list: *Result.List, comptime format: []const u8, args: anytype) i32 {
    const text = std.fmt.allocPrint(memory(), format, args) catch @panic("out of memory");
    list.append(memory(), text) catch @panic("out of memory");
    return @intCast(list.items.len);
}

fn give(value: ?[]const u8, buf: [*]u8, cap: usize) i32 {
    const text = value orelse return -1;
    if (text.len <= cap) @memcpy(buf[0..text.len], text);
    return @intCast(text.len);
}

const Ptr = [*]const u8;

pub fn output(p: Ptr, n: usize) i32 {
    did.output = std.mem.concat(memory(), u8, &.{ did.output, p[0..n] }) catch @panic("out of memory");
    return 0;
}

pub fn fail(kind: i32, p: Ptr, n: usize) i32 {
    did.failed = .{ .kind = kind, .text = copy(p[0..n]) };
    return 0;
}

pub fn info(k: Ptr, kn: usize, buf: [*]u8, cap: usize) i32 {
    for (given.info) |field| if (std.mem.eql(u8, field.name, k[0..kn])) return give(field.value, buf, cap);
    if (std.mem.startsWith(u8, k[0..kn], "secret.")) return -2;
    if (std.mem.startsWith(u8, k[0..kn], "child.")) return give(k[0..kn], buf, cap);
    return -1;
}

pub fn emit(p: Ptr, n: usize) i32 {
    _ = note(&did.emitted, "{s}", .{p[0..n]});
    return 0;
}

pub fn log(level: i32, p: Ptr, n: usize) void {
    _ = note(&did.logs, "{d} {s}", .{ level, p[0..n] });
}

pub fn log_level() i32 {
    return 0;
}

pub fn metric(kind: i32, p: Ptr, n: usize) i32 {
    return note(&did.metrics, "{d} {s}", .{ kind, p[0..n] });
}

pub fn observe(_: i32, _: f64) i32 {
    return 0;
}

pub fn progress(_: i64, _: i64) void {}

pub fn remaining() i64 {
    return given.remaining;
}

pub fn submit(p: Ptr, n: usize, when: i32) i32 {
    return note(&did.submitted, "{d} {s}", .{ when, p[0..n] });
}

pub fn kv_get(k: Ptr, kn: usize, buf: [*]u8, cap: usize) i32 {
    return give(did.keys.get(k[0..kn]), buf, cap);
}

pub fn kv_version(k: Ptr, kn: usize) i64 {
    return @intFromBool(did.keys.contains(k[0..kn]));
}

pub fn kv_set(k: Ptr, kn: usize, v: Ptr, vn: usize, _: i64) i32 {
    did.keys.put(memory(), copy(k[0..kn]), copy(v[0..vn])) catch @panic("out of memory");
    return 0;
}

pub fn kv_del(k: Ptr, kn: usize) i32 {
    _ = did.keys.orderedRemove(k[0..kn]);
    return 0;
}

pub fn kv_add(k: Ptr, kn: usize, delta: i64) i64 {
    const n = std.fmt.parseInt(i64, did.keys.get(k[0..kn]) orelse "0", 10) catch return std.math.minInt(i64) + 5;
    const sum = std.fmt.allocPrint(memory(), "{d}", .{n + delta}) catch @panic("out of memory");
    _ = kv_set(k, kn, sum.ptr, sum.len, 0);
    return n + delta;
}

pub fn kv_cas(k: Ptr, kn: usize, version: i64, v: Ptr, vn: usize) i32 {
    return if (version == kv_version(k, kn)) kv_set(k, kn, v, vn, 0) else -8;
}

pub fn state_set(t: Ptr, tn: usize, status: i32, m: Ptr, mn: usize, p: Ptr, pn: usize) i32 {
    _ = note(&did.states, "{s} {d} {s} {s}", .{ t[0..tn], status, m[0..mn], p[0..pn] });
    if (given.state == null) {
        const state: jobhost.State = .{ .tag = t[0..tn], .status = status, .message = m[0..mn], .version = 1 };
        given.state = std.json.Stringify.valueAlloc(memory(), state, .{}) catch @panic("out of memory");
    }
    return 0;
}

pub fn state_get(_: i32, _: Ptr, _: usize, buf: [*]u8, cap: usize) i32 {
    return give(given.state orelse "{}", buf, cap);
}

pub fn state_watch(_: i32, _: Ptr, _: usize) i32 {
    return recv();
}

pub fn http(p: Ptr, n: usize) i32 {
    const respond = given.http orelse return -2;
    _ = note(&did.requests, "{s}", .{p[0..n]});
    return note(&answers, "{s}", .{respond(p[0..n])}) - 1;
}

pub fn http_defer(p: Ptr, n: usize, e: Ptr, en: usize, a: Ptr, an: usize) i32 {
    return note(&did.deferred, "{s} {s} {s}", .{ e[0..en], a[0..an], p[0..n] });
}

pub fn timer(_: i64) i32 {
    return note(&answers, "", .{}) - 1;
}

pub fn recv() i32 {
    return inbox;
}

pub fn wait(_: [*]const i32, n: usize, _: i64) i32 {
    return if (n == 0) -5 else 0;
}

pub fn read(handle: i32, buf: [*]u8, cap: usize) i32 {
    const left = if (handle == inbox) message: {
        if (received == given.messages.len) return -7;
        break :message given.messages[received];
    } else answers.items[@intCast(handle)];
    if (cap == 0) return @intCast(left.len);
    if (handle == inbox) received += 1 else answers.items[@intCast(handle)] = "";
    return give(left, buf, @max(cap, left.len));
}

pub fn drop(_: i32) i32 {
    return 0;
}

pub fn random_get(buf: [*]u8, n: usize) i32 {
    var seed = std.Random.DefaultPrng.init(draws);
    seed.random().bytes(buf[0..n]);
    draws += 1;
    return 0;
}

var draws: u64 = 0; // so that tests are the same each time
