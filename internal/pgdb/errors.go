package pgdb

import (
	"context"
	"errors"
	"io"
	"net"

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

// isLost reports whether the connection is gone, so that the outcome of what was under way is unknown.
func isLost(err error) bool {
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

// isData reports whether the server doesn't take what a change has in it: a text that is none, or more than an index may
// have. The others of the commit can be made.
func isData(err error) bool {
	state := stateOf(err)
	return len(state) == 5 && (state[:2] == "22" || state[:2] == "54")
}

// isFence reports whether the fence of a batch has refused it: the term is over.
func isFence(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == notNullViolation && pg.TableName == "batch" && pg.ColumnName == "epoch"
}

func explainURL(err error) error {
	return &jobhost.Error{Code: jobhost.CodeInvalid, Field: "store", Message: "not an address of PostgreSQL: " + reasonOf(err), Hint: "such as postgres://jobhost@db.example/jobhost"}
}

func explainConnect(err error) error {
	return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: "connect to PostgreSQL: " + reasonOf(err)}
}

// explainRead turns what a read failed for into what a caller may see. Errors of jobhost stay as they are.
func explainRead(ctx context.Context, err error) error {
	return explain(ctx, "read from PostgreSQL", err)
}

// explain turns what failed into what a caller may see.
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

// reasonOf is an error's text without what pgx says of the connection, which may name the user and the database. pgx
// leaves passwords out itself.
func reasonOf(err error) string {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		if inner := connect.Unwrap(); inner != nil {
			return inner.Error()
		}
	}
	return err.Error()
}
