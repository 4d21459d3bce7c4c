const host = @import("host.zig");
const abi = host.abi;
const Error = host.Error;
const Job = @import("job.zig").Job;

/// Handle is something that is waited for: a request, a timer, a job, a watch, the inbox.
/// At the end of the job all are given up.
pub const Handle = enum(i32) { _ };

/// timer returns a handle that is ready after so many milliseconds.
pub fn timer(_: *Job, ms: u63) Error!Handle {
    return @enumFromInt(try host.checked(abi.timer(ms)));
}

/// wait waits until one of the handles is ready and returns its index; null = none was
/// within the timeout in milliseconds: 0 only looks, null waits as long as the attempt
/// may run. Nothing is given up: who wants the first one only drops the others.
pub fn wait(_: *Job, timeout_ms: ?u63, handles: []const Handle) Error!?usize {
    const numbers: [*]const i32 = @ptrCast(handles.ptr);
    const timeout: i64 = if (timeout_ms) |ms| ms else -1;
    const answer = abi.wait(numbers, handles.len, timeout);
    return if (answer == -1) null else @intCast(try host.checked(answer));
}

/// read waits for the next message of a handle and returns it whole. Of watches and the
/// inbox each call returns the next one, and error Closed after the last.
pub fn read(job: *Job, handle: Handle) Error![]u8 {
    const number = @intFromEnum(handle);
    const size: usize = @intCast(try host.checked(abi.read(number, job.input.ptr, 0)));
    const message = try job.arena.alloc(u8, @max(size, 1)); // an empty one is read too, or it stays
    var got: usize = 0;
    while (true) {
        const n: usize = @intCast(try host.checked(abi.read(number, message[got..].ptr, message.len - got)));
        got += n;
        if (n == 0 or got >= size) return message[0..got];
    }
}

/// drop gives a handle up: a request that is under way is cancelled.
pub fn drop(_: *Job, handle: Handle) void {
    _ = abi.drop(@intFromEnum(handle));
}

/// inbox returns the handle of what a fiber is sent; error Denied for jobs.
pub fn inbox(_: *Job) Error!Handle {
    return @enumFromInt(try host.checked(abi.recv()));
}

/// recv waits for the next message that the fiber is sent; null = nobody can send any more.
/// while (try job.recv()) |message| { … }
pub fn recv(job: *Job) Error!?[]u8 {
    return job.read(try job.inbox()) catch |err| switch (err) {
        error.Closed => null,
        else => err,
    };
}
