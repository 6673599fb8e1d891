// SPDX-License-Identifier: Apache-2.0

package scram

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestVerifier plays the server of the example in RFC 7677, section 3: a server that keeps our verifier accepts the client's
// proof and signs as the client expects.
func TestVerifier(t *testing.T) {
	decode := func(text string) []byte {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	v, err := salted([]byte("pencil"), decode("W22ZaJ0SNY7soEsUEjb6gQ=="), Iterations)
	if err != nil {
		t.Fatal(err)
	}
	const (
		want  = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
		nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
		auth  = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=" + nonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=" + nonce
	)
	if diff := cmp.Diff(want, v.String()); diff != "" {
		t.Errorf("The verifier is not in PostgreSQL's form: -want, +got:\n%s", diff)
	}
	if got := mac(v.serverKey, auth); !hmac.Equal(got, decode("6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")) {
		t.Error("The server's signature is not the one of the RFC")
	}

	// The proof is the client's key, hidden by its signature.
	clientKey := decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
	for i, b := range mac(v.storedKey, auth) {
		clientKey[i] ^= b
	}
	if got := sha256.Sum256(clientKey); !hmac.Equal(got[:], v.storedKey) {
		t.Error("The client's proof of the RFC is not accepted")
	}
}

func TestParse(t *testing.T) {
	made, err := New([]byte("pencil"), Iterations)
	if err != nil {
		t.Fatal(err)
	}
	good := made.String()
	v, err := Parse([]byte(good))
	if err != nil || v.String() != good || len(v.salt) != 16 || v.Iterations != Iterations {
		t.Errorf("Parse(%s): want what was written, got %s (%v)", good, v, err)
	}
	if other, err := New([]byte("pencil"), Iterations); err != nil || other.String() == good {
		t.Errorf("Each verifier should have a salt of its own, got %s twice (%v)", good, err)
	}
	if !v.Fits([]byte("pencil")) || v.Fits([]byte("Pencil")) {
		t.Error("A verifier should fit its own value and no other")
	}
	if _, err := New([]byte("geheimnisträger"), Iterations); err == nil {
		t.Error("There should be no verifier of what clients normalise differently")
	}
	for what, key := range map[string][]byte{"stored": v.storedKey, "server": v.serverKey} {
		key[0] ^= 1
		if v.Fits([]byte("pencil")) {
			t.Errorf("A verifier whose %s key was changed should not fit", what)
		}
		key[0] ^= 1
	}
	for _, bad := range []string{
		"", "md5a3556571e93b0d20722ba62be61e8c2d", good[:len(good)-8], good + "=", "\n" + good, strings.Replace(good, "4096", "-1", 1),
		strings.Replace(good, "256", "1", 1), strings.ReplaceAll(good, "$", ":"),
	} {
		if v, err := Parse([]byte(bad)); err == nil {
			t.Errorf("Parse(%q): want an error, got %s", bad, v)
		}
	}
}
