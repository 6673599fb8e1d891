// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

func TestDerive(t *testing.T) {
	scram := v1alpha1.Derivation{Format: v1alpha1.FormatSCRAM}
	hash := v1alpha1.Derivation{Format: v1alpha1.FormatBcrypt}
	sha2 := v1alpha1.Derivation{Format: v1alpha1.FormatCachingSHA2}
	must := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	scrammed := must(formats[v1alpha1.FormatSCRAM].make([]byte("secret-value"), scram))
	stored := must(formats[v1alpha1.FormatCachingSHA2].make([]byte("secret-value"), sha2))
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
		"SHA2":         {reason: "Nothing there is made.", value: "secret-value", how: sha2},
		"SHA2Kept":     {reason: "What fits is kept.", was: stored, value: "secret-value", how: sha2, kept: true},
		"OtherSHA2":    {reason: "What fits another value is made again.", was: stored, value: "other-value", how: sha2},
		"OtherFormat3": {reason: "What is of another format is made again.", was: scrammed, value: "secret-value", how: sha2},
		"OtherValue":   {reason: "What fits another value is made again.", was: scrammed, value: "other-value", how: scram},
		"OtherHash":    {reason: "What fits another value is made again.", was: hashed, value: "other-value", how: hash},
		"Rubbish":      {reason: "What fits nothing is made again.", was: []byte("rubbish"), value: "secret-value", how: scram},
		"OtherFormat":  {reason: "What is of another format is made again.", was: scrammed, value: "secret-value", how: hash},
		"OtherFormat2": {reason: "What is of another format is made again.", was: hashed, value: "secret-value", how: scram},
		"MoreIterations": {
			reason: "Another number of iterations is made again.", was: scrammed, value: "secret-value",
			how: v1alpha1.Derivation{Format: v1alpha1.FormatSCRAM, Iterations: ptr.To[int32](8192)},
		},
		"MoreCost": {
			reason: "Another cost is made again.", was: hashed, value: "secret-value",
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
		"SHA2OfUmlauts": {
			reason: "What clients encode differently is refused.",
			value:  "müller", how: sha2, says: "printable ASCII",
		},
		"SHA2OfMore":   {reason: "MySQL takes no longer password.", value: strings.Repeat("x", 257), how: sha2, says: "1 to 256"},
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
