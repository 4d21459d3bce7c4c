package pgpayload

import "github.com/jobhost/jobhost/internal/pgdb"

// Schemas returns the tables of the store.
func Schemas() []pgdb.Schema { return []pgdb.Schema{{Name: "payload", Steps: []string{schema}}} }

// schema turns compression off: payloads are compressed before they get here, if at all. Keys are compared byte by byte.
const schema = `
CREATE TABLE jobhost.payload_object (key text COLLATE "C" PRIMARY KEY, pieces bigint NOT NULL);
CREATE TABLE jobhost.payload_piece (key text COLLATE "C", n bigint, data bytea NOT NULL, PRIMARY KEY (key, n));
ALTER TABLE jobhost.payload_piece ALTER data SET STORAGE EXTERNAL;
CREATE TABLE jobhost.payload_partial (key text COLLATE "C" PRIMARY KEY, written timestamptz NOT NULL, dead boolean NOT NULL)
	WITH (fillfactor=50);
CREATE TABLE jobhost.payload_mark (name text COLLATE "C" PRIMARY KEY, content bytea NOT NULL)
`
