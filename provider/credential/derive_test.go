// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// TestSCRAM plays the server of the example in RFC 7677, section 3: a server that
// keeps our verifier accepts the client's proof and signs as the client expects.
func TestSCRAM(t *testing.T) {
	decode := func(text string) []byte {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}

		return b
	}

	v, err := verify([]byte("pencil"), decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
	if err != nil {
		t.Fatal(err)
	}

	const (
		nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
		auth  = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=" + nonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=" + nonce
	)

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

func TestParseSCRAM(t *testing.T) {
	good, err := newSCRAM([]byte("pencil"), 4096)
	if err != nil {
		t.Fatal(err)
	}

	v, err := parseSCRAM(good)
	if err != nil || v.String() != string(good) || len(v.salt) != 16 || v.iterations != 4096 {
		t.Errorf("parseSCRAM(%s): want what was written, got %s (%v)", good, v, err)
	}

	if !v.fits([]byte("pencil")) || v.fits([]byte("Pencil")) {
		t.Error("A verifier should fit its own value and no other")
	}

	for what, key := range map[string][]byte{"stored": v.storedKey, "server": v.serverKey} {
		key[0] ^= 1
		if v.fits([]byte("pencil")) {
			t.Errorf("A verifier whose %s key was changed should not fit", what)
		}

		key[0] ^= 1
	}

	text := string(good)
	for _, bad := range []string{
		"", "md5a3556571e93b0d20722ba62be61e8c2d", text[:len(text)-8], text + "=", "\n" + text, strings.Replace(text, "4096", "-1", 1),
		strings.Replace(text, "256", "1", 1), strings.ReplaceAll(text, "$", ":"),
	} {
		if v, err := parseSCRAM([]byte(bad)); err == nil {
			t.Errorf("parseSCRAM(%q): want an error, got %s", bad, v)
		}
	}
}

func TestDerive(t *testing.T) {
	scram := v1alpha1.Derivation{Format: v1alpha1.FormatSCRAM}
	hash := v1alpha1.Derivation{Format: v1alpha1.FormatBcrypt}
	must := func(b []byte, err error) []byte {
		t.Helper()

		if err != nil {
			t.Fatal(err)
		}

		return b
	}
	scrammed := must(newSCRAM([]byte("secret-value"), 4096))
	hashed := must(bcrypt.GenerateFromPassword([]byte("secret-value"), 10))

	cases := map[string]struct {
		reason string
		was    []byte
		value  string
		how    v1alpha1.Derivation
		kept   bool
		says   string
	}{
		"SCRAM":        {reason: "Nothing there is made.", value: "secret-value", how: scram},
		"Bcrypt":       {reason: "Nothing there is made.", value: "secret-value", how: hash},
		"SCRAMKept":    {reason: "What fits is kept.", was: scrammed, value: "secret-value", how: scram, kept: true},
		"BcryptKept":   {reason: "What fits is kept.", was: hashed, value: "secret-value", how: hash, kept: true},
		"OtherValue":   {reason: "What fits another value is made anew.", was: scrammed, value: "other-value", how: scram},
		"OtherHash":    {reason: "What fits another value is made anew.", was: hashed, value: "other-value", how: hash},
		"Rubbish":      {reason: "What fits nothing is made anew.", was: []byte("rubbish"), value: "secret-value", how: scram},
		"OtherFormat":  {reason: "What is of another format is made anew.", was: scrammed, value: "secret-value", how: hash},
		"OtherFormat2": {reason: "What is of another format is made anew.", was: hashed, value: "secret-value", how: scram},
		"MoreIterations": {
			reason: "Another number of iterations is made anew.", was: scrammed, value: "secret-value",
			how: v1alpha1.Derivation{Format: v1alpha1.FormatSCRAM, Iterations: ptr.To[int32](8192)},
		},
		"MoreCost": {
			reason: "Another cost is made anew.", was: hashed, value: "secret-value",
			how: v1alpha1.Derivation{Format: v1alpha1.FormatBcrypt, Cost: ptr.To[int32](11)},
		},
		"SCRAMOfUmlauts": {
			reason: "What clients and servers normalise differently is refused.",
			value:  "müller", how: scram, says: "printable ASCII",
		},
		"SCRAMOfBytes": {
			reason: "What no client can type is refused.",
			value:  "a\x00b", how: scram, says: "printable ASCII",
		},
		"Longest":      {reason: "72 bytes are read to the end.", value: strings.Repeat("x", 72), how: hash},
		"BcryptOfMore": {reason: "What would be cut off is refused.", value: strings.Repeat("x", 73), how: hash, says: "at most 72 bytes"},
		"BcryptOfZero": {reason: "What would be cut off is refused.", value: "a\x00b", how: hash, says: "none of them zero"},
		"Unknown":      {reason: "A format that no schema has let through is refused.", value: "x", how: v1alpha1.Derivation{Format: "MD5"}, says: "not known"},
	}

	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			m := newMemory()

			got, err := m.derive(tc.was, []byte(tc.value), tc.how)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), tc.value) {
					t.Errorf("\n%s\nderive(...): want an error that says %q and not the value, got %v", tc.reason, tc.says, err)
				}

				return
			}

			if err != nil {
				t.Fatal(err)
			}

			if kept := string(got) == string(tc.was); kept != tc.kept {
				t.Errorf("\n%s\nderive(...) kept what was there: want %t, got %t", tc.reason, tc.kept, kept)
			}

			if !formats[tc.how.Format].fits(got, []byte(tc.value), tc.how) {
				t.Errorf("\n%s\nderive(...): what was derived does not fit", tc.reason)
			}

			again, err := m.derive(got, []byte(tc.value), tc.how)
			if err != nil || string(again) != string(got) {
				t.Errorf("\n%s\nderive(...) a second time: want the same again (%v)", tc.reason, err)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	m := newMemory()
	m.learn(m.trace([]byte("ab"), []byte("c")))

	for _, tc := range []struct {
		reason string
		parts  []string
		want   bool
	}{
		{reason: "What was learnt is known.", parts: []string{"ab", "c"}, want: true},
		{reason: "Parts do not run into one another.", parts: []string{"a", "bc"}},
		{reason: "Order matters.", parts: []string{"c", "ab"}},
	} {
		if got := m.knows(m.trace([]byte(tc.parts[0]), []byte(tc.parts[1]))); got != tc.want {
			t.Errorf("%s\nknows(%v): want %t, got %t", tc.reason, tc.parts, tc.want, got)
		}
	}

	for i := range 2 * most {
		m.learn(m.trace([]byte{byte(i), byte(i >> 8), byte(i >> 16)}))
	}

	if len(m.seen) > most {
		t.Errorf("A memory should hold at most %d traces, got %d", most, len(m.seen))
	}

	if newMemory().trace([]byte("ab")) == m.trace([]byte("ab")) {
		t.Error("Two memories should not share traces")
	}
}
