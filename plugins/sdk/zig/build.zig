//! For workers that are built by `zig build`: the module "jobhost", to import.

const std = @import("std");

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const jobhost = b.addModule("jobhost", .{ .root_source_file = b.path("src/jobhost.zig"), .target = target });
    const tests = b.addRunArtifact(b.addTest(.{ .root_module = jobhost }));
    b.step("test", "run the tests").dependOn(&tests.step);
}
