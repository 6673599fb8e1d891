// SPDX-License-Identifier: Apache-2.0

package masking

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Name": {
			"A name that is wrong is what people look for.", &pgconn.PgError{Code: "42P01", Message: `relation "nobody" does not exist`},
			`the server says "relation \"nobody\" does not exist" (42P01)`,
		},
		"Value": {
			"Where data has the wrong form, the server quotes it.", &pgconn.PgError{Code: "22P02", Message: `invalid input syntax for type integer: "jane@original.example"`},
			`the server says "invalid input syntax for type integer: \"…\"" (22P02)`,
		},
		"Quotes": {
			"A value may have quotes of its own.", &pgconn.PgError{Code: "22P02", Message: `invalid input syntax for type integer: "{"name": "Jane",` + "\n" + `"age": 7}"`},
			`the server says "invalid input syntax for type integer: \"…\"" (22P02)`,
		},
		"Row": {
			"The detail quotes a row.", &pgconn.PgError{Code: "23505", Message: `duplicate key value violates unique constraint "people_email_key"`, Detail: "Key (email)=(jane@original.example) already exists."},
			`the server says "duplicate key value violates unique constraint \"people_email_key\"" (23505)`,
		},
		"Other": {"What is no answer of the server stays.", errors.New("there is no such database in what was restored"), "there is no such database in what was restored"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := said(tc.err).Error(); got != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}
