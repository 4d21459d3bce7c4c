const std = @import("std");
const host = @import("host.zig");
const abi = host.abi;
const Error = host.Error;
const Handle = @import("wait.zig").Handle;
const Job = @import("job.zig").Job;

/// status has the statuses of a State that mean the same to all. Other positive numbers
/// are the worker's own, such as how far it is; other negative ones are its errors.
pub const status = struct {
    pub const not_started: i32 = 0;
    pub const started: i32 = 1;
    pub const finished: i32 = std.math.maxInt(i32);
    pub const failed: i32 = -1;
    pub const warning: i32 = -2;
};

/// State is what a task of a job has reported under a tag.
pub const State = struct {
    job: []const u8 = "",
    task: u31 = 0,
    tag: []const u8 = "",
    status: i32 = 0,
    message: []const u8 = "",
    /// version counts the reports, from 1; 0 = there was none.
    version: u63 = 0,
    /// payload is a JSON object, or null.
    payload: ?std.json.Value = null,
};

/// StateQuery says which states are asked for: without any field, all of this job.
pub const StateQuery = struct {
    /// task is one of the job's, from 0; null = all.
    task: ?u31 = null,
    tag: []const u8 = "",
    /// job is another job, which the manifest must grant; null = this one.
    job: ?[]const u8 = null,

    fn number(q: StateQuery) i32 {
        return if (q.task) |task| task else -1;
    }

    fn name(q: StateQuery, job: *Job) Error![]const u8 {
        return if (q.job) |other| job.print("{s}/{s}", .{ other, q.tag }) else q.tag;
    }
};

/// setState reports how far this task is, durably and at once. payload is a JSON object,
/// or empty.
pub fn setState(_: *Job, tag: []const u8, is: i32, message: []const u8, payload: []const u8) Error!void {
    try host.ok(abi.state_set(tag.ptr, tag.len, is, message.ptr, message.len, payload.ptr, payload.len));
}

/// getState returns the state that prevails among those asked for: the one with the lowest
/// status, so that a job is as far as its slowest task, and an error shows.
pub fn getState(job: *Job, query: StateQuery) Error!State {
    const tag = try query.name(job);
    return parse(State, job, try host.fill(job.arena, abi.state_get, .{ query.number(), tag.ptr, tag.len }));
}

/// watchState returns a watch of such states and their changes.
pub fn watchState(job: *Job, query: StateQuery) Error!Watch {
    const tag = try query.name(job);
    return .{ .handle = @enumFromInt(try host.checked(abi.state_watch(query.number(), tag.ptr, tag.len))) };
}

/// Watch tells of states: first of those that there are, then that this was all, and then
/// of each change.
pub const Watch = struct {
    /// handle is for Job.wait and Job.drop.
    handle: Handle,

    pub const Event = struct {
        state: State = .{},
        /// replay = it was so before.
        replay: bool = false,
        /// sentinel = this was all that there was, and no state.
        sentinel: bool = false,
    };

    /// next waits for the next event. Errors: Closed when the job was deleted, Limit when
    /// too many changes were left unread.
    pub fn next(w: Watch, job: *Job) Error!Event {
        return parse(Event, job, try job.read(w.handle));
    }
};

fn parse(comptime T: type, job: *Job, text: []const u8) Error!T {
    return std.json.parseFromSliceLeaky(T, job.arena, text, .{ .ignore_unknown_fields = true }) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        else => error.InputOutput,
    };
}
