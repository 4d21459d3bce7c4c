//! mdtable makes a Markdown table of a CSV, whose first line are the headings. Columns of
//! nothing but numbers are aligned to the right. What separates fields is the worker's
//! config "separator", a comma without one.

const std = @import("std");
const jobhost = @import("jobhost");
const Reader = @import("csv.zig").Reader;

pub const panic = jobhost.panic;
pub const std_options = jobhost.std_options;

comptime {
    jobhost.entry("jh_run", run);
}

/// Column is what has to be known of a column before its first line is written.
const Column = struct {
    width: usize = 3, // of a line such as "--:"
    numbers: bool = true,
};

fn run(job: *jobhost.Job) ![]const u8 {
    const separator = try job.config("separator") orelse ",";
    if (separator.len != 1) return job.permanent("the separator is one byte, not \"{s}\"", .{separator});

    var rows: std.ArrayList([]const []const u8) = .empty;
    const mark = "\u{feff}"; // with which some programs begin a text
    const text = if (std.mem.startsWith(u8, job.input, mark)) job.input[mark.len..] else job.input;
    var reader: Reader = .{ .text = text, .separator = separator[0] };
    while (reader.next(job.arena) catch |err| switch (err) {
        error.Quote => return bad(job, "line {d}: a quote is not closed, or not at the end of its field", .{reader.line}),
        error.OutOfMemory => return err,
    }) |row| {
        if (rows.items.len > 0 and row.len != rows.items[0].len)
            return bad(job, "line {d}: {d} fields instead of {d}", .{ reader.line, row.len, rows.items[0].len });
        try rows.append(job.arena, row);
    }
    if (rows.items.len == 0) return bad(job, "there are no headings", .{});
    return table(job.arena, rows.items);
}

/// bad fails for good: the same input has the same fault each time.
fn bad(job: *jobhost.Job, comptime format: []const u8, args: anytype) jobhost.Job.Failed {
    return job.fail(.{ .message = job.print(format, args) catch format, .code = "bad_csv", .category = .validation, .permanent = true });
}

/// table writes rows as a table; all have as many fields.
fn table(arena: std.mem.Allocator, rows: []const []const []const u8) ![]const u8 {
    const columns = try arena.alloc(Column, rows[0].len);
    for (columns, 0..) |*column, i| {
        column.* = .{};
        for (rows, 0..) |row, n| {
            column.width = @max(column.width, width(row[i]));
            if (n > 0 and !isNumber(row[i])) column.numbers = false;
        }
        if (rows.len == 1) column.numbers = false;
    }
    var out: std.ArrayList(u8) = .empty;
    for (rows, 0..) |row, n| {
        for (row, columns) |field, column| {
            try out.appendSlice(arena, "| ");
            const pad = column.width - width(field);
            if (column.numbers) try out.appendNTimes(arena, ' ', pad);
            for (field) |c| switch (c) {
                '|' => try out.appendSlice(arena, "\\|"),
                '\n' => try out.appendSlice(arena, "<br>"),
                '\r' => {},
                else => try out.append(arena, c),
            };
            if (!column.numbers) try out.appendNTimes(arena, ' ', pad);
            try out.append(arena, ' ');
        }
        try out.appendSlice(arena, "|\n");
        if (n > 0) continue;
        for (columns) |column| {
            try out.appendSlice(arena, "| ");
            try out.appendNTimes(arena, '-', column.width - 1);
            try out.append(arena, if (column.numbers) ':' else '-');
            try out.append(arena, ' ');
        }
        try out.appendSlice(arena, "|\n");
    }
    return out.items[0 .. out.items.len - 1];
}

/// width returns how many characters a field is in the table.
fn width(field: []const u8) usize {
    var n: usize = 0;
    for (field) |c| n += switch (c) {
        '|' => 2,
        '\n' => 4,
        '\r', 0x80...0xbf => 0, // not the first byte of a character
        else => 1,
    };
    return n;
}

/// isNumber reports whether a field is a number, or empty.
fn isNumber(field: []const u8) bool {
    var digits = field;
    if (digits.len > 0 and (digits[0] == '-' or digits[0] == '+')) digits = digits[1..];
    var points: usize = 0;
    for (digits) |c| switch (c) {
        '0'...'9' => {},
        '.' => points += 1,
        else => return false,
    };
    return points <= 1;
}

/// made runs the worker and expects a result.
fn made(input: []const u8, config: []const jobhost.Field, want: []const u8) !void {
    var got = try jobhost.testing.run(run, .{ .input = input, .info = config });
    defer got.deinit();
    try std.testing.expectEqualStrings(want, if (got.failed) |failure| failure.text else got.output);
}

test "tables" {
    try made("name,n\nÄpfel,7\n\"a|b\nc\",-12.5\n", &.{},
        \\| name      |     n |
        \\| --------- | ----: |
        \\| Äpfel     |     7 |
        \\| a\|b<br>c | -12.5 |
    );
    try made("\u{feff}a;b", &.{.{ .name = "config.separator", .value = ";" }},
        \\| a   | b   |
        \\| --- | --- |
    );
}

test "faults" {
    try made("", &.{}, "{\"message\":\"there are no headings\",\"code\":\"bad_csv\",\"category\":\"validation\"}");
    try made("a,b\r\n1\r\n", &.{}, "{\"message\":\"line 2: 1 fields instead of 2\",\"code\":\"bad_csv\",\"category\":\"validation\"}");
}

test {
    _ = @import("csv.zig");
}
