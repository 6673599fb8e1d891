// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"
)

// errNotSCRAM is why a session with the source does not begin.
var errNotSCRAM = errors.New("it does not log users in by scram-sha-256, and a password is sent in no other form: " +
	"set password_encryption = 'scram-sha-256' there, set the password of the user again, and let pg_hba.conf admit it by scram-sha-256")

// errIterations is why a session does not begin with a server that makes the proof of the password take long: it cannot be interrupted.
var errIterations = errors.New("it wants more than 1000000 iterations of scram-sha-256, or does not say how many: set scram_iterations lower there, and set the password of the user again")

const (
	maxIterations = 1_000_000
	// maxFirst is how long the first message of SCRAM may be, in bytes.
	maxFirst = 4 << 10
)

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
	f := pgproto3.NewFrontend(&scramReader{from: from}, to)
	f.SetMaxBodyLen(maxBody)
	return f
}

// A scramReader reads what a server says, and looks at the head of each message until the session has begun.
type scramReader struct {
	from io.Reader
	// head of the message that is being read: its type, its length, and what it requests. Of the first one of SCRAM it is the whole message.
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
	case what == saslBegins:
	case what == saslContinue && length > maxFirst:
		return errIterations
	case what == saslContinue:
		if len(r.head) < head+length {
			return nil
		}
		length = request // all of it was read
		if !affordable(r.head[head+request:]) {
			return errIterations
		}
	case what == saslFinal:
		r.proved = true
	case what == loggedIn && r.proved:
	default:
		return errNotSCRAM
	}
	r.rest, r.head = max(0, length-request), nil
	return nil
}

// affordable reports whether the first message of a server, such as "r=nonce,s=salt,i=4096", asks for few iterations.
func affordable(first []byte) bool {
	said := false
	for part := range bytes.SplitSeq(first, []byte(",")) {
		text, found := bytes.CutPrefix(part, []byte("i="))
		if !found {
			continue
		}
		n, err := strconv.Atoi(string(text))
		if said = true; err != nil || n < 1 || n > maxIterations {
			return false
		}
	}
	return said
}
