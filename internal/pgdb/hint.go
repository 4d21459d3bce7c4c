package pgdb

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobhost/jobhost"
)

// SQLSTATEs of what the one who runs the server can put right.
const (
	notAuthorized    = "28000"
	wrongPassword    = "28P01"
	noDatabase       = "3D000"
	notPermitted     = "42501"
	tooManySessions  = "53300"
	hintNotReachable = "is PostgreSQL running, and does it listen there? See listen_addresses and port in its postgresql.conf"
)

// connectHint says what to do when no connection could be made; empty = that isn't known.
func connectHint(err error) string {
	user, database := "USER", "DATABASE"
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		user = connect.Config.User
		database = cmp.Or(connect.Config.Database, user)
	}
	switch stateOf(err) {
	case wrongPassword:
		return fmt.Sprintf(`the password is that of password in [cluster], else of PGPASSWORD, else of PGPASSFILE or ~/.pgpass; \password %s in psql sets it. `+
			"A server says the same of a role that there isn't: createuser --pwprompt %[1]s", user)
	case notAuthorized:
		return fmt.Sprintf("is there a role %s (createuser --pwprompt %[1]s), and does pg_hba.conf of the server let it in from this machine?", user)
	case noDatabase:
		return fmt.Sprintf("make it as the server's superuser: createdb --owner %s --encoding UTF8 --template template0 %s", user, database)
	case notPermitted:
		return fmt.Sprintf("let the role own the database, as the server's superuser: ALTER DATABASE %s OWNER TO %s", database, user)
	case tooManySessions:
		return "a host that leads needs up to 10 connections: see max_connections of the server, and who has them"
	case cannotConnectNow, adminShutdown, crashShutdown:
		return "start the host again when the server takes connections"
	}
	return networkHint(err)
}

// networkHint says what to do when the server wasn't reached, or is not the one that was meant.
func networkHint(err error) string {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &name):
		return "is the name of the server right in host.store, and can this machine look it up?"
	case errors.As(err, &certificate):
		return "name the file with the certificate of the server's authority in host.store, as in ?sslmode=verify-full&sslrootcert=/etc/jobhost/root.pem"
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return "this server takes no changes, as one that follows another: name all servers in host.store, as in postgres://USER@db-1,db-2/DATABASE"
	case errors.Is(err, context.DeadlineExceeded):
		return "the server doesn't answer: " + hintNotReachable + ". Or does a firewall drop what is sent to it?"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return hintNotReachable
	case strings.Contains(err.Error(), noTLS):
		return "the server has no TLS: turn it on (ssl in postgresql.conf), or say sslmode=disable in host.store if the network on the way there can be trusted"
	}
	return ""
}

// explainTables is why the tables can't be looked at or changed.
func (db *DB) explainTables(err error) error {
	var known *jobhost.Error
	if errors.As(err, &known) || stateOf(err) != notPermitted {
		return err
	}
	c := &db.conn.Config
	return &jobhost.Error{
		Code: jobhost.CodeDenied, Field: "store", Message: fmt.Sprintf("the role %s may not use the tables of PostgreSQL: %s", c.User, reasonOf(err)),
		Hint: fmt.Sprintf("all hosts use one role. It owns the database (ALTER DATABASE %s OWNER TO %s) or the schema %s in it, and has made the tables",
			cmp.Or(c.Database, c.User), c.User, db.cfg.Schema),
	}
}
