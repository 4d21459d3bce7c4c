//! hello is the smallest useful worker: it greets whoever the payload names.

const std = @import("std");
const jobhost = @import("jobhost");

pub const panic = jobhost.panic;
pub const std_options = jobhost.std_options;

comptime {
    jobhost.entry("jh_run", run);
}

fn run(job: *jobhost.Job) ![]const u8 {
    const name = std.mem.trim(u8, job.input, " \r\n");
    if (name.len == 0) return job.permanent("nobody to greet: the payload is empty", .{});
    return job.print("hello, {s}", .{name});
}

test run {
    var got = try jobhost.testing.run(run, .{ .input = "Ada\n" });
    defer got.deinit();
    try std.testing.expectEqualStrings("hello, Ada", got.output);
    var empty = try jobhost.testing.run(run, .{});
    defer empty.deinit();
    try std.testing.expectEqual(2, empty.failed.?.kind);
}
