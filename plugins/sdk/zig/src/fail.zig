const std = @import("std");

/// Failure is what people and retry policies want to know of a failure. What is left out
/// is the host's default.
pub const Failure = struct {
    /// message is for people; up to 4 KiB are kept.
    message: []const u8 = "",
    /// code is short and stable: 1 to 64 of A-Z a-z 0-9 . _ -
    code: ?[]const u8 = null,
    category: ?Category = null,
    severity: ?Severity = null,
    /// context is a JSON object, up to 16 KiB.
    context: ?[]const u8 = null,
    /// permanent = no further attempt.
    permanent: bool = false,

    pub const Category = enum { validation, timeout, network, resource, business, system, unknown };
    pub const Severity = enum { critical, @"error", warning, info };

    /// write writes the failure as the host reads it.
    pub fn write(f: Failure, w: *std.Io.Writer) std.Io.Writer.Error!void {
        const most = 5000; // more than the host keeps, so that it says that it was cut
        try w.writeAll("{\"message\":");
        try std.json.Stringify.encodeJsonString(f.message[0..@min(f.message.len, most)], .{}, w);
        if (f.code) |code| {
            try w.writeAll(",\"code\":");
            try std.json.Stringify.encodeJsonString(code, .{}, w);
        }
        if (f.category) |c| try w.print(",\"category\":\"{s}\"", .{@tagName(c)});
        if (f.severity) |s| try w.print(",\"severity\":\"{s}\"", .{@tagName(s)});
        if (f.context) |c| try w.print(",\"context\":{s}", .{c});
        try w.writeByte('}');
    }
};
