// SPDX-License-Identifier: Apache-2.0

package cachingsha2

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCrypt has vectors of the specification. Their salts have at most 16 characters here, so that nothing of them is cut.
func TestCrypt(t *testing.T) {
	cases := map[string]struct {
		secret, salt string
		rounds       int
		want         string
	}{
		"Default":   {secret: "Hello world!", salt: "saltstring", rounds: 5000, want: "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"},
		"Rounds":    {secret: "Hello world!", salt: "saltstringsaltst", rounds: 10000, want: "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"},
		"ShortSalt": {secret: "we have a short salt string but not a short password", salt: "short", rounds: 77777, want: "JiO1O3ZpDAxGJeaDIuqCoEFysAe1mZNJRs3pw0KQRd/"},
		"LongSecret": {
			secret: "a very much longer text to encrypt.  This one even stretches over morethan one line.",
			salt:   "anotherlongsalts", rounds: 1400, want: "Rx.j8H.h8HjEDGomFU8bDkXm3XIUnzyxf12oP84Bnq1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, crypt([]byte(tc.secret), []byte(tc.salt), tc.rounds)); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// foobar is what a server of MySQL stored for the password "foobar", with a salt of its own.
const foobar = "24412430303524031A69251C34295C4B35167C7F1E5A7B63091349503974624D34504B5A424679354856336868686F52485A736E4A733368786E427575516C73446469496537"

func TestFits(t *testing.T) {
	server, err := hex.DecodeString(foobar)
	if err != nil {
		t.Fatal(err)
	}
	own, err := New([]byte("foobar"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := New([]byte("foobar"))
	if err != nil {
		t.Fatal(err)
	}
	if own == again {
		t.Error("New(...): two verifiers must not have the same salt")
	}
	other := own.String()
	cases := map[string]struct {
		reason string
		text   string
		secret string
		parses bool
		fits   bool
	}{
		"Servers":    {reason: "What a server made fits.", text: string(server), secret: "foobar", parses: true, fits: true},
		"Own":        {reason: "What was made here fits.", text: own.String(), secret: "foobar", parses: true, fits: true},
		"Other":      {reason: "Another password does not.", text: own.String(), secret: "foobaR", parses: true},
		"Empty":      {reason: "Nor does none.", text: own.String(), parses: true},
		"MoreRounds": {reason: "Another number of rounds is made again.", text: "$A$00A$" + other[7:], secret: "foobar", parses: true},
		"NoRounds":   {reason: "No rounds prove nothing.", text: "$A$000$" + other[7:]},
		"OtherKind":  {reason: "Another digest is no verifier.", text: "$5$005$" + other[7:]},
		"Cut":        {reason: "Nor is a part of one.", text: other[:len(other)-1]},
		"Longer":     {reason: "Nor what goes on.", text: other + "x"},
		"Dollar":     {reason: "A $ would end the salt.", text: "$A$005$$" + other[8:]},
		"SCRAM":      {reason: "Nor is one of another server.", text: "SCRAM-SHA-256$4096:AAAA$AAAA:AAAA"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := Parse([]byte(tc.text))
			if (err == nil) != tc.parses {
				t.Fatalf("\n%s\nParse(...): got error %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			if got := v.Fits([]byte(tc.secret)); got != tc.fits {
				t.Errorf("\n%s\nFits(%q): want %t, got %t", tc.reason, tc.secret, tc.fits, got)
			}
			if diff := cmp.Diff(tc.text, v.String()); diff != "" {
				t.Errorf("\n%s\nString(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNew(t *testing.T) {
	cases := map[string]struct {
		reason string
		secret string
		says   string
	}{
		"Longest":  {reason: "MySQL takes 256 characters.", secret: strings.Repeat("x", 256)},
		"Longer":   {reason: "It takes no more.", secret: strings.Repeat("x", 257), says: "more than 256"},
		"Empty":    {reason: "No password opens nothing.", says: "empty"},
		"Umlauts":  {reason: "What clients encode differently is refused.", secret: "müller", says: "printable ASCII"},
		"NotTyped": {reason: "What no client can type is refused.", secret: "a\x00b", says: "printable ASCII"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := New([]byte(tc.secret))
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("\n%s\nNew(...): want an error that says %q, got %v", tc.reason, tc.says, err)
				}
				return
			}
			if err != nil || !v.Fits([]byte(tc.secret)) {
				t.Errorf("\n%s\nNew(...): want a verifier that fits, got error %v", tc.reason, err)
			}
			if text := v.String(); len(text) != 70 || !strings.HasPrefix(text, "$A$005$") || strings.ContainsAny(text[7:], `'\$`) {
				t.Errorf("\n%s\nString(): got %q", tc.reason, text)
			}
		})
	}
}
