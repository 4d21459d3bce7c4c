const std = @import("std");
const host = @import("host.zig");
const abi = host.abi;
const Error = host.Error;
const Handle = @import("wait.zig").Handle;
const Job = @import("job.zig").Job;
const childID = @import("submit.zig").childID;

/// Field is a field of a header, or a label.
pub const Field = struct {
    name: []const u8,
    value: []const u8,
};

/// Request is an HTTP request. Only url is needed.
pub const Request = struct {
    url: []const u8,
    method: []const u8 = "GET",
    header: []const Field = &.{},
    body: []const u8 = "",

    /// text writes the request as the host reads it.
    fn text(r: Request, arena: std.mem.Allocator) Error![]u8 {
        if (host.hasBreak(r.method) or host.hasBreak(r.url) or std.mem.indexOfScalar(u8, r.method, ' ') != null) return error.Invalid;
        var out: std.ArrayList(u8) = .empty;
        try out.print(arena, "{s} {s}\n", .{ r.method, r.url });
        for (r.header) |field| {
            if (field.name.len == 0 or std.mem.indexOfScalar(u8, field.name, ':') != null) return error.Invalid;
            try host.putField(&out, arena, field.name, field.value);
        }
        try out.append(arena, '\n');
        try out.appendSlice(arena, r.body);
        return out.items;
    }
};

/// Response is an HTTP response with any status, or the reason why there is none.
pub const Response = struct {
    /// status is such as 200; 0 = there was no response, and body is a message for people.
    status: u16,
    /// reason is a word of docs/abi.md, such as dns or timeout, when there was none.
    reason: []const u8 = "",
    /// head are the lines of the header, with names in lower case.
    head: []const u8,
    body: []const u8,

    /// ok reports whether the status is 200 to 299.
    pub fn ok(r: Response) bool {
        return r.status >= 200 and r.status <= 299;
    }

    /// header returns the first field of a name in lower case.
    pub fn header(r: Response, name: []const u8) ?[]const u8 {
        var lines = std.mem.splitScalar(u8, r.head, '\n');
        while (lines.next()) |line| {
            const at = std.mem.indexOf(u8, line, ": ") orelse continue;
            if (std.mem.eql(u8, line[0..at], name)) return line[at + 2 ..];
        }
        return null;
    }

    /// parse reads a response as the host writes it.
    fn parse(text: []const u8) Error!Response {
        const end = std.mem.indexOf(u8, text, "\n\n") orelse return error.Invalid;
        const line = std.mem.indexOfScalar(u8, text, '\n').?;
        var r: Response = .{
            .status = std.fmt.parseInt(u16, text[0..line], 10) catch return error.Invalid,
            .head = text[@min(line + 1, end)..end],
            .body = text[end + 2 ..],
        };
        if (r.status == 0) r.reason = r.header("error") orelse "unknown";
        return r;
    }
};

/// send begins a request and returns its handle.
pub fn send(job: *Job, request: Request) Error!Handle {
    const text = try request.text(job.arena);
    return @enumFromInt(try host.checked(abi.http(text.ptr, text.len)));
}

/// receive waits for the response of a handle, and gives the handle up.
pub fn receive(job: *Job, handle: Handle) Error!Response {
    const text = try job.read(handle);
    job.drop(handle);
    return Response.parse(text);
}

/// fetch sends a request and waits for the response.
pub fn fetch(job: *Job, request: Request) Error!Response {
    return job.receive(try job.send(request));
}

/// deferRequest lets the host send a request when this job has succeeded. The response
/// comes as a job for entry of this worker, with args, up to 64 KiB. It returns the id by
/// which the reply names it.
pub fn deferRequest(job: *Job, request: Request, entry: []const u8, args: []const u8) Error![]const u8 {
    const text = try request.text(job.arena);
    return childID(job, try host.checked(abi.http_defer(text.ptr, text.len, entry.ptr, entry.len, args.ptr, args.len)));
}

/// Reply is what a job is given whose request was deferred by another.
pub const Reply = struct {
    id: []const u8,
    args: []const u8,
    response: Response,
};

/// parseReply reads the payload of such a job. Error Invalid: it is none, as when somebody
/// else has submitted the job.
pub fn parseReply(job: *Job) Error!Reply {
    const response = try Response.parse(job.input);
    const decoder = std.base64.standard.Decoder;
    const encoded = response.header("jobhost-args") orelse return error.Invalid;
    const args = try job.arena.alloc(u8, decoder.calcSizeForSlice(encoded) catch return error.Invalid);
    decoder.decode(args, encoded) catch return error.Invalid;
    return .{ .id = response.header("jobhost-request") orelse return error.Invalid, .args = args, .response = response };
}
