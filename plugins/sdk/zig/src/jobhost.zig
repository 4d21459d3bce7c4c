//! The SDK for writing jobhost workers in Zig.
//!
//!     const jobhost = @import("jobhost");
//!
//!     pub const panic = jobhost.panic;
//!     pub const std_options = jobhost.std_options;
//!
//!     comptime {
//!         jobhost.entry("jh_run", run);
//!     }
//!
//!     fn run(job: *jobhost.Job) ![]const u8 {
//!         return job.print("hello, {s}", .{job.input});
//!     }
//!
//! The README beside this folder says how to build it.

const std = @import("std");
const builtin = @import("builtin");
const host = @import("host.zig");
const abi = host.abi;

pub const Job = @import("job.zig").Job;
pub const Error = host.Error;
pub const Failure = @import("fail.zig").Failure;
pub const KV = @import("kv.zig").KV;
pub const Spec = @import("submit.zig").Spec;
pub const Child = @import("submit.zig").Child;
pub const Handle = @import("wait.zig").Handle;
pub const Field = @import("http.zig").Field;
pub const Request = @import("http.zig").Request;
pub const Response = @import("http.zig").Response;
pub const Reply = @import("http.zig").Reply;
pub const State = @import("state.zig").State;
pub const StateQuery = @import("state.zig").StateQuery;
pub const Watch = @import("state.zig").Watch;
pub const status = @import("state.zig").status;
/// testing runs handlers without wasm, under `zig test`.
pub const testing = if (wasm) {} else @import("fake.zig");

const wasm = builtin.target.cpu.arch.isWasm();

/// entry exports a handler: a function of *Job that returns the result, []const u8, or
/// nothing. The one that is called by default is named jh_run. An error fails the
/// attempt, which is tried again as the worker's retry policy says; see Job.fail for more.
/// Call it at comptime.
pub fn entry(comptime name: []const u8, comptime handler: anytype) void {
    if (!wasm) return; // for `zig test`
    _ = Mailbox;
    const Call = struct {
        fn call(len: usize) callconv(.c) u64 {
            const out = run(mailbox[0..len], handler) orelse return 0;
            return @as(u64, @intFromPtr(out.ptr)) << 32 | out.len;
        }
    };
    _ = Export(&Call.call, name, "(i32) -> (i64)");
}

/// Export exports a function to the host, by no more than its name. With @export alone the
/// linker would know it by that name too, and the compiler brings along functions with
/// names such as log.
fn Export(comptime f: anytype, comptime name: []const u8, comptime functype: []const u8) type {
    const inner, const outer = .{ "jobhost_" ++ name, "jobhost_entry_" ++ name };
    return struct {
        comptime {
            @export(f, .{ .name = inner, .visibility = .hidden });
            asm (".functype " ++ inner ++ " " ++ functype ++ "\n" ++
                    ".section .text." ++ outer ++ ",\"\",@\n" ++
                    ".hidden " ++ outer ++ "\n.globl " ++ outer ++ "\n.type " ++ outer ++ ",@function\n" ++
                    outer ++ ":\n.functype " ++ outer ++ " " ++ functype ++ "\n" ++
                    (if (functype[1] == 'i') "local.get 0\n" else "") ++
                    "call " ++ inner ++ "\nend_function\n" ++
                    ".export_name " ++ outer ++ ", " ++ name);
        }
    };
}

/// start exports a function that runs once, before the first job: what it leaves behind,
/// each job finds. Call it at comptime.
pub fn start(comptime f: fn () void) void {
    if (wasm) _ = Export(&Plain(f).call, "_initialize", "() -> ()");
}

/// wake exports a function that runs before each job, to renew what must not repeat, such
/// as the seed of a generator. Call it at comptime.
pub fn wake(comptime f: fn () void) void {
    if (wasm) _ = Export(&Plain(f).call, "jh_wake", "() -> ()");
}

fn Plain(comptime f: fn () void) type {
    return struct {
        fn call() callconv(.c) void {
            f();
        }
    };
}

var mailbox: []u8 = &.{};

/// Mailbox exports the place where the host writes payloads.
const Mailbox = struct {
    comptime {
        _ = Export(&grow, "jh_buf", "(i32) -> (i32)");
    }

    fn grow(min: usize) callconv(.c) ?[*]u8 {
        memory.free(mailbox);
        mailbox = &.{}; // nothing in it is needed any more
        mailbox = memory.alloc(u8, @max(min, 64 << 10)) catch @trap(); // the host says that there was none
        return mailbox.ptr;
    }
};

const memory = if (wasm) std.heap.wasm_allocator else std.heap.page_allocator;

/// arena is the memory of a job.
var arena: std.heap.ArenaAllocator = .init(memory);

/// run runs a handler and tells the host what the result alone does not.
pub fn run(input: []u8, comptime handler: anytype) ?[]const u8 {
    _ = arena.reset(.retain_capacity); // of the job before, whose result was copied
    var job: Job = .{ .input = input, .arena = arena.allocator() };
    const answer = handler(&job);
    const result = switch (@typeInfo(@TypeOf(answer))) {
        .error_union => answer catch |err| {
            job.failedWith(err);
            return null;
        },
        else => answer,
    };
    return if (@TypeOf(result) == void) null else result;
}

/// fillRandom fills memory with random bytes of the host, where there is no job yet, as in
/// `wake`; in a job there is Job.random.
pub fn fillRandom(bytes: []u8) void {
    if (abi.random_get(bytes.ptr, bytes.len) != 0) @panic("the host has no random bytes");
}

/// panic makes a panic a failure of the attempt with code panic. The sandbox is thrown
/// away. Declare it in the root file: pub const panic = jobhost.panic;
pub const panic = std.debug.FullPanic(panicked);

fn panicked(message: []const u8, _: ?usize) noreturn {
    @branchHint(.cold);
    var text: [8 << 10]u8 = undefined; // there may be no memory
    var w: std.Io.Writer = .fixed(&text);
    const failure: Failure = .{ .message = message[0..@min(message.len, 1000)], .code = "panic", .category = .system, .severity = .critical };
    failure.write(&w) catch {};
    const said = w.buffered();
    _ = abi.fail(1, said.ptr, said.len);
    @trap(); // what was said stands
}

/// std_options makes std.log write to the job's log. Declare it in the root file:
/// pub const std_options = jobhost.std_options;
pub const std_options: std.Options = .{ .log_level = .debug, .logFn = logFn };

fn logFn(comptime level: std.log.Level, comptime scope: @EnumLiteral(), comptime format: []const u8, args: anytype) void {
    const prefix = if (scope == .default) "" else "(" ++ @tagName(scope) ++ ") ";
    Job.logLine(level, prefix ++ format, args);
}

test {
    if (!wasm) _ = @import("tests.zig");
}
