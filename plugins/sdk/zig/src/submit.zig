const std = @import("std");
const host = @import("host.zig");
const abi = host.abi;
const Error = host.Error;
const Field = @import("http.zig").Field;
const Handle = @import("wait.zig").Handle;
const Job = @import("job.zig").Job;

/// Spec says what job is wanted. Only worker is needed, which the manifest must name in
/// the submit of this worker; what is left out is that worker's default.
pub const Spec = struct {
    worker: []const u8,
    payload: []const u8 = "",
    /// id names the job; empty = a name that is the same in each attempt of this task.
    id: []const u8 = "",
    content_type: []const u8 = "",
    entry: []const u8 = "",
    priority: []const u8 = "",
    /// run_at is a time by RFC 3339.
    run_at: []const u8 = "",
    delay_ms: u63 = 0,
    timeout_ms: u63 = 0,
    tasks: u31 = 0,
    max_attempts: u31 = 0,
    labels: []const Field = &.{},

    /// text writes the spec as the host reads it.
    fn text(spec: Spec, arena: std.mem.Allocator) Error![]u8 {
        var out: std.ArrayList(u8) = .empty;
        inline for (.{ "worker", "id", "content_type", "entry", "priority", "run_at" }) |name| {
            const value = @field(spec, name);
            if (value.len > 0) try host.putField(&out, arena, name, value);
        }
        if (spec.delay_ms > 0) try out.print(arena, "delay: {d}ms\n", .{spec.delay_ms});
        if (spec.timeout_ms > 0) try out.print(arena, "timeout: {d}ms\n", .{spec.timeout_ms});
        if (spec.tasks > 0) try out.print(arena, "tasks: {d}\n", .{spec.tasks});
        if (spec.max_attempts > 0) try out.print(arena, "max_attempts: {d}\n", .{spec.max_attempts});
        for (spec.labels) |label| {
            try out.appendSlice(arena, "label.");
            try host.putField(&out, arena, label.name, label.value);
        }
        try out.append(arena, '\n');
        try out.appendSlice(arena, spec.payload);
        return out.items;
    }
};

/// Child is a job that was submitted at once.
pub const Child = struct {
    id: []const u8,
    /// handle is ready when the job has ended; then JSON is read of it that tells how.
    handle: Handle,
};

/// submit submits a job when this one has succeeded, exactly once, and returns its id.
pub fn submit(job: *Job, spec: Spec) Error![]const u8 {
    return (try submitAt(job, spec, 0)).id;
}

/// submitNow submits a job at once, whatever becomes of this one.
pub fn submitNow(job: *Job, spec: Spec) Error!Child {
    return submitAt(job, spec, 1);
}

fn submitAt(job: *Job, spec: Spec, when: i32) Error!Child {
    const text = try spec.text(job.arena);
    const number = try host.checked(abi.submit(text.ptr, text.len, when));
    return .{ .id = try childID(job, number), .handle = @enumFromInt(number) };
}

/// childID returns the id of a job by its number among those of this attempt.
pub fn childID(job: *Job, number: i32) Error![]const u8 {
    return job.info(try job.print("child.{d}", .{number}));
}
