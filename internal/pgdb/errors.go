package pgdb

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost"
)

// SQLSTATEs that decide what is done next.
const (
	notNullViolation = "23502"
	lockNotAvailable = "55P03"
	adminShutdown    = "57P01"
	crashShutdown    = "57P02"
	cannotConnectNow = "57P03"
	readOnlySQL      = "25006"
	queryCanceled    = "57014"

	diskFull           = "53100"
	tooManyConnections = "53300"
)

func stateOf(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// isConnLost reports whether the connection was lost, so that the outcome of what was under way is unknown.
func isConnLost(err error) bool {
	if err == nil {
		return false
	}
	switch stateOf(err) {
	case adminShutdown, crashShutdown, cannotConnectNow:
		return true
	case "":
	default:
		return false
	}
	var network net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network) ||
		pgconn.SafeToRetry(err) || errors.Is(err, context.DeadlineExceeded)
}

// isBadData reports whether the server rejects the content of a change, such as a text that is not UTF-8 or is too long
// for an index. The other changes of the commit can still be made.
func isBadData(err error) bool {
	state := stateOf(err)
	return len(state) == 5 && (state[:2] == "22" || state[:2] == "54")
}

// isFence reports whether a batch was refused by its fence (see [Writer.fence]): the term is over.
func isFence(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == notNullViolation && pg.TableName == "batch" && pg.ColumnName == "epoch"
}

func explainURL(err error) error {
	hint := "such as postgres://jobhost@db.example/jobhost"
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		hint = "the files that it names have to be on this machine, where the user of the host may read them"
	}
	return &jobhost.Error{Code: jobhost.CodeInvalid, Field: "store", Message: "not an address of PostgreSQL: " + reasonOf(err), Hint: hint}
}

func explainConnect(err error) error {
	return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "connect to PostgreSQL: " + reasonOf(err), Hint: connectHint(err)}
}

// explainRead is explain for reads.
func explainRead(ctx context.Context, err error) error {
	return explain(ctx, "read from PostgreSQL", err)
}

// explain turns an error of pgx into one that a caller may see. Errors of jobhost stay as they are.
func explain(ctx context.Context, doing string, err error) error {
	var known *jobhost.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: doing + ": " + reasonOf(err)}
}

// reasonOf is an error's text in one line, without what pgx says of the connection, which may name the user and the database. pgx
// leaves passwords out itself.
func reasonOf(err error) string {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) || connect.Unwrap() == nil {
		return err.Error()
	}
	return strings.Join(attempts(connect.Unwrap().Error()), "; ")
}

// noTLS is what pgx says of a server that takes no TLS.
const noTLS = "server refused TLS connection"

// attempts returns what each attempt to connect has failed for, once. A server is tried with and without TLS unless the URL
// says otherwise, and then it is no news that it has none.
func attempts(text string) (reasons []string) {
	lines := strings.Split(text, "\n")
	others := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(line, noTLS) })
	if len(others) > 0 {
		lines = others
	}
	for _, line := range lines {
		known := func(r string) bool { return strings.HasSuffix(r, line) }
		if !slices.ContainsFunc(reasons, known) {
			reasons = append(reasons, line)
		}
	}
	return reasons
}
