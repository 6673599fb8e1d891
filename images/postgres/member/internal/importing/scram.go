// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"
)

// errNotSCRAM is why a session with the source does not begin.
var errNotSCRAM = errors.New("it does not log users in by scram-sha-256, and a password is sent in no other form: " +
	"set password_encryption = 'scram-sha-256' there, set the password of the user again, and let pg_hba.conf admit it by scram-sha-256")

// Requests of a server while a session begins.
const (
	loggedIn     = 0
	saslBegins   = 10
	saslContinue = 11
	saslFinal    = 12
)

// scramOnly is a frontend that ends before a password would go to the server in another form than SCRAM, or before a session begins without
// one. By SCRAM the server has to prove that it knows the password, and does not learn it. libpq has the setting require_auth for that, and pgx
// has none.
func scramOnly(from io.Reader, to io.Writer) *pgproto3.Frontend {
	return pgproto3.NewFrontend(&scramReader{from: from}, to)
}

// A scramReader reads what a server says, and looks at the head of each message until the session has begun.
type scramReader struct {
	from io.Reader
	// head of the message that is being read: its type, its length, and what it requests.
	head []byte
	// rest of its bytes.
	rest   int
	proved bool
	begun  bool
}

func (r *scramReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if r.begun {
		return n, err
	}
	for said := p[:n]; len(said) > 0 && !r.begun; {
		if r.rest > 0 {
			took := min(r.rest, len(said))
			r.rest, said = r.rest-took, said[took:]
			continue
		}
		r.head, said = append(r.head, said[0]), said[1:]
		if err := r.judge(); err != nil {
			return 0, err
		}
	}
	return n, err
}

// judge the head of a message once it is complete.
func (r *scramReader) judge() error {
	const head, request = 5, 4
	if len(r.head) < head {
		return nil
	}
	length := int(binary.BigEndian.Uint32(r.head[1:])) - request
	if length < 0 || length > 1<<20 {
		return errors.New("it does not speak the protocol of PostgreSQL")
	}
	if r.head[0] != 'R' {
		r.begun = r.head[0] == 'Z'
		r.rest, r.head = length, nil
		return nil
	}
	if len(r.head) < head+request {
		return nil
	}
	switch what := binary.BigEndian.Uint32(r.head[head:]); {
	case what == saslBegins, what == saslContinue:
	case what == saslFinal:
		r.proved = true
	case what == loggedIn && r.proved:
	default:
		return errNotSCRAM
	}
	r.rest, r.head = max(0, length-request), nil
	return nil
}
