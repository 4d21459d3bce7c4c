const std = @import("std");
const host = @import("host.zig");
const abi = host.abi;
const Error = host.Error;

/// KV are the keys and values of the worker, which all its jobs share. What a job changes
/// it sees itself at once; it is applied when the job succeeds, exactly once. A key is 1
/// to 512 bytes, a value has up to 1 MiB.
pub const KV = struct {
    arena: std.mem.Allocator,

    /// get returns the value of a key; null = there is none.
    pub fn get(kv: KV, key: []const u8) Error!?[]const u8 {
        return host.fill(kv.arena, abi.kv_get, .{ key.ptr, key.len }) catch |err| switch (err) {
            error.NotFound => null,
            else => err,
        };
    }

    /// set sets a key for some milliseconds; 0 = for good.
    pub fn set(_: KV, key: []const u8, value: []const u8, ttl_ms: u63) Error!void {
        try host.ok(abi.kv_set(key.ptr, key.len, value.ptr, value.len, ttl_ms));
    }

    /// delete removes a key; one that isn't there is fine.
    pub fn delete(_: KV, key: []const u8) Error!void {
        try host.ok(abi.kv_del(key.ptr, key.len));
    }

    /// add adds to a number in decimal, 0 without one, and returns the sum. What jobs add at
    /// the same time adds up.
    pub fn add(_: KV, key: []const u8, delta: i64) Error!i64 {
        const sum = abi.kv_add(key.ptr, key.len, delta);
        const least = std.math.minInt(i64); // errors are the least numbers that there are
        return if (sum < least + 256) host.errorOf(least - sum) else sum;
    }

    /// version returns the version of a key, 0 = there is no such key, for compareAndSet.
    /// Ask for it before the value.
    pub fn version(_: KV, key: []const u8) Error!u63 {
        const answer = abi.kv_version(key.ptr, key.len);
        return if (answer < 0) host.errorOf(answer) else @intCast(answer);
    }

    /// compareAndSet sets a key if it has that version; error Conflict if not. If somebody
    /// changes it before this job has succeeded, the attempt fails and is made again.
    pub fn compareAndSet(_: KV, key: []const u8, is: u63, value: []const u8) Error!void {
        try host.ok(abi.kv_cas(key.ptr, key.len, is, value.ptr, value.len));
    }
};
