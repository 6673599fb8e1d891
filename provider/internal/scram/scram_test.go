// SPDX-License-Identifier: Apache-2.0

package scram

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestVerifier compares with the example of RFC 7677: user, pencil.
func TestVerifier(t *testing.T) {
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}

	const want = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

	if got, err := verifier("pencil", salt, Iterations); err != nil || got != want {
		t.Errorf("want %s, got %s, %v", want, got, err)
	}

	a, _ := Verifier("pencil")
	if b, _ := Verifier("pencil"); a == b {
		t.Error("Each verifier has a salt of its own.")
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason, password string
		ok               bool
	}{
		"Good":    {reason: "Whatever is printed.", password: `aB3$ '"\~`, ok: true},
		"Empty":   {reason: "No password opens nothing."},
		"Newline": {reason: "A file that ends with a newline.", password: "secret\n"},
		"Umlaut":  {reason: "Clients normalise it differently.", password: "geheimnisträger"},
		"Long":    {reason: "Long ones are cut somewhere.", password: strings.Repeat("x", maxPassword+1)},
	}

	for name, tc := range cases {
		if err := Check(tc.password); (err == nil) != tc.ok {
			t.Errorf("%s: %s Check(...): got %v", name, tc.reason, err)
		}
	}
}
