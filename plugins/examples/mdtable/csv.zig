//! CSV as RFC 4180 has it.

const std = @import("std");

/// Reader reads one row after the other.
pub const Reader = struct {
    text: []const u8, // what is left
    separator: u8 = ',',
    line: usize = 0, // where the last row began, from 1
    seen: usize = 1, // lines so far

    /// next returns the fields of the next row; null = there is none. Empty lines are none.
    /// Fields without quotes are parts of the text.
    pub fn next(r: *Reader, arena: std.mem.Allocator) error{ Quote, OutOfMemory }!?[]const []const u8 {
        while (r.text.len > 0 and (r.text[0] == '\n' or r.text[0] == '\r')) r.take(1);
        if (r.text.len == 0) return null;
        r.line = r.seen;
        var row: std.ArrayList([]const u8) = .empty;
        while (true) {
            try row.append(arena, try r.field(arena));
            if (r.text.len == 0 or r.text[0] != r.separator) return row.items;
            r.take(1);
        }
    }

    /// take takes bytes off.
    fn take(r: *Reader, n: usize) void {
        r.seen += std.mem.count(u8, r.text[0..n], "\n");
        r.text = r.text[n..];
    }

    /// field takes a field off, up to what separates it from the next.
    fn field(r: *Reader, arena: std.mem.Allocator) ![]const u8 {
        if (r.text.len > 0 and r.text[0] == '"') return r.quoted(arena);
        const end = std.mem.indexOfAny(u8, r.text, &.{ r.separator, '\n', '\r' }) orelse r.text.len;
        defer r.take(end);
        return r.text[0..end];
    }

    fn quoted(r: *Reader, arena: std.mem.Allocator) ![]const u8 {
        var out: std.ArrayList(u8) = .empty;
        while (true) {
            r.take(1); // the quote
            const end = std.mem.indexOfScalar(u8, r.text, '"') orelse return error.Quote;
            try out.appendSlice(arena, r.text[0..end]);
            r.take(end + 1);
            if (r.text.len == 0 or r.text[0] == r.separator or r.text[0] == '\n' or r.text[0] == '\r') return out.items;
            if (r.text[0] != '"') return error.Quote;
            try out.append(arena, '"'); // two stand for one
        }
    }
};

fn expectRows(text: []const u8, want: []const []const []const u8) !void {
    var arena: std.heap.ArenaAllocator = .init(std.testing.allocator);
    defer arena.deinit();
    var r: Reader = .{ .text = text };
    for (want) |fields| {
        const row = (try r.next(arena.allocator())).?;
        try std.testing.expectEqual(fields.len, row.len);
        for (fields, row) |field, got| try std.testing.expectEqualStrings(field, got);
    }
    try std.testing.expectEqual(null, try r.next(arena.allocator()));
}

test Reader {
    try expectRows("", &.{});
    try expectRows("a,b\n1,2", &.{ &.{ "a", "b" }, &.{ "1", "2" } });
    try expectRows("a,\r\n\r\n,b\r\n", &.{ &.{ "a", "" }, &.{ "", "b" } });
    try expectRows("\"a,\"\"b\"\"\n\",\"\"", &.{&.{ "a,\"b\"\n", "" }});
    var r: Reader = .{ .text = "a\n\"b\nc\"\nd\n\"e\"f" };
    var arena: std.heap.ArenaAllocator = .init(std.testing.allocator);
    defer arena.deinit();
    for ([_]usize{ 1, 2, 4 }) |line| {
        _ = try r.next(arena.allocator());
        try std.testing.expectEqual(line, r.line);
    }
    try std.testing.expectError(error.Quote, r.next(arena.allocator()));
    r = .{ .text = "\"never closed" };
    try std.testing.expectError(error.Quote, r.next(arena.allocator()));
}
