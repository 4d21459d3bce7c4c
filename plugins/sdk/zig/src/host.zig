//! What the parts of the SDK share: the host, or a fake of it for `zig test`, and how
//! it answers.

const std = @import("std");
const builtin = @import("builtin");

pub const abi = if (builtin.target.cpu.arch.isWasm()) @import("abi.zig") else @import("fake.zig");

/// Error is why the host could not do what was asked.
pub const Error = error{
    NotFound,
    /// Denied: it is not granted in the manifest.
    Denied,
    /// Stopped: the attempt is cancelled or past its deadline.
    Stopped,
    /// Limit: a limit is reached.
    Limit,
    /// Invalid: an argument makes no sense.
    Invalid,
    InputOutput,
    Closed,
    Conflict,
    OutOfMemory,
};

/// errorOf returns the error of a number below 0.
pub fn errorOf(errno: i64) Error {
    return switch (errno) {
        -1 => error.NotFound,
        -2 => error.Denied,
        -3 => error.Stopped,
        -4 => error.Limit,
        -5 => error.Invalid,
        -7 => error.Closed,
        -8 => error.Conflict,
        else => error.InputOutput,
    };
}

/// checked makes an error of an answer below 0.
pub fn checked(answer: i32) Error!i32 {
    return if (answer < 0) errorOf(answer) else answer;
}

/// ok is `checked` for calls that answer nothing else.
pub fn ok(answer: i32) Error!void {
    _ = try checked(answer);
}

/// fill asks by a fill-or-size call until what it answers fits. The call's last two
/// arguments are the buffer.
pub fn fill(arena: std.mem.Allocator, call: anytype, args: anytype) Error![]u8 {
    var buf = try arena.alloc(u8, 256);
    while (true) {
        const n: usize = @intCast(try checked(@call(.auto, call, args ++ .{ buf.ptr, buf.len })));
        if (n <= buf.len) return buf[0..n];
        buf = try arena.alloc(u8, n);
    }
}

/// putField appends a line "name: value".
pub fn putField(text: *std.ArrayList(u8), arena: std.mem.Allocator, name: []const u8, value: []const u8) Error!void {
    if (hasBreak(name) or hasBreak(value)) return error.Invalid; // it would be two
    try text.print(arena, "{s}: {s}\n", .{ name, value });
}

pub fn hasBreak(text: []const u8) bool {
    return std.mem.indexOfAny(u8, text, "\r\n") != null;
}
