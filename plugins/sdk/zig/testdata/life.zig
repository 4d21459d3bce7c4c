//! life shows what stays from job to job, and what doesn't.

const std = @import("std");
const jobhost = @import("jobhost");
const Job = jobhost.Job;

pub const panic = jobhost.panic;

comptime {
    jobhost.start(fill);
    jobhost.wake(reseed);
    jobhost.entry("jh_run", run);
    jobhost.entry("lengths", lengths);
    jobhost.entry("hoard", hoard);
    jobhost.entry("deep", deep);
    jobhost.entry("outside", outside);
}

var table: []u8 = undefined; // is filled once, and found by each job
var generator: std.Random.DefaultPrng = undefined;

fn fill() void {
    table = std.heap.wasm_allocator.dupe(u8, "abc") catch @panic("no memory");
}

fn reseed() void {
    var seed: [8]u8 = undefined;
    jobhost.fillRandom(&seed);
    generator = .init(@bitCast(seed));
}

fn run(job: *Job) ![]const u8 {
    for (0..100) |_| @memset(try job.arena.alloc(u8, 1000), 'x');
    return job.print("{s} {d} {s}", .{ table, generator.random().int(u32), job.input });
}

/// lengths is a fiber that tells the length of each message, however many there are.
fn lengths(job: *Job) !void {
    var memory: std.heap.ArenaAllocator = .init(std.heap.wasm_allocator);
    var turn = job.with(memory.allocator());
    while (try turn.recv()) |message| {
        try turn.emit(try turn.print("{d}", .{message.len}));
        _ = memory.reset(.retain_capacity);
    }
}

fn hoard(job: *Job) !void {
    while (true) _ = try job.arena.alloc(u8, 1 << 20);
}

fn deeper(n: i32, above: *volatile [100]u8) i32 {
    var frame: [100]u8 = undefined;
    const here: *volatile [100]u8 = &frame;
    here[0] = above[0];
    return if (n < 0) 0 else 1 + deeper(n + 1, here);
}

fn deep(job: *Job) ![]const u8 {
    var frame: [100]u8 = undefined;
    return job.print("{d}", .{deeper(1, &frame)});
}

fn outside(job: *Job) []const u8 {
    return table[job.input.len..2];
}
