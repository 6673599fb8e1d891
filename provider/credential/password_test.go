// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"math"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

func TestGenerate(t *testing.T) {
	seen := map[string]bool{}
	for name, a := range alphabets {
		for _, length := range []int32{16, 24, 128} {
			for range 200 {
				v, err := generate(v1alpha1.CredentialParameters{Length: &length}, v1alpha1.Key{Alphabet: name})
				if err != nil {
					t.Fatal(err)
				}
				pw := string(v)
				if len(pw) != int(length) || strings.Trim(pw, a.rest) != "" || !strings.Contains(a.first, pw[:1]) {
					t.Errorf("generate(%s, %d): not a value of this alphabet and length", name, length)
				}
				for _, class := range a.classes {
					if !strings.ContainsAny(pw, class) {
						t.Errorf("generate(%s, %d): no character of %q", name, length, class)
					}
				}
				if seen[pw] {
					t.Errorf("generate(%s, %d): the same value twice", name, length)
				}
				seen[pw] = true
			}
		}
	}
}

func TestGenerateUsesTheNearest(t *testing.T) {
	cases := map[string]struct {
		reason string
		params v1alpha1.CredentialParameters
		key    v1alpha1.Key
		length int
		rest   string
	}{
		"Nothing": {
			reason: "What no schema has defaulted has the schema's defaults.",
			length: 32,
			rest:   alphabets[v1alpha1.AlphabetAlphanumeric].rest,
		},
		"All": {
			reason: "What is said for all keys is for this one, too.",
			params: v1alpha1.CredentialParameters{Length: ptr.To[int32](40), Alphabet: v1alpha1.AlphabetHexadecimal},
			length: 40,
			rest:   "0123456789abcdef",
		},
		"One": {
			reason: "What is said for one key wins.",
			params: v1alpha1.CredentialParameters{Length: ptr.To[int32](40), Alphabet: v1alpha1.AlphabetPrintable},
			key:    v1alpha1.Key{Length: ptr.To[int32](64), Alphabet: v1alpha1.AlphabetHexadecimal},
			length: 64,
			rest:   "0123456789abcdef",
		},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			got, err := generate(tc.params, tc.key)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != tc.length || strings.Trim(string(got), tc.rest) != "" {
				t.Errorf("\n%s\ngenerate(...): want %d characters of %q", tc.reason, tc.length, tc.rest)
			}
		})
	}
}

// TestEntropy counts what can be generated at the shortest lengths that the schema takes.
func TestEntropy(t *testing.T) {
	shortest := map[v1alpha1.Alphabet]int{
		v1alpha1.AlphabetAlphanumeric: 16,
		v1alpha1.AlphabetHexadecimal:  24,
		v1alpha1.AlphabetPrintable:    16,
	}
	for name, a := range alphabets {
		if got := math.Log2(a.count(shortest[name])); got < 95 {
			t.Errorf("Alphabet %s: want at least 95 bits at length %d, got %.1f", name, shortest[name], got)
		}
	}
}

// count the values of a length that have a character of each class: all, without those that lack one, with those that lack two,
// and so on.
func (a alphabet) count(length int) float64 {
	sum := 0.0
	for lacking := range 1 << len(a.classes) {
		first, rest, sign := a.first, a.rest, 1.0
		for i, class := range a.classes {
			if lacking&(1<<i) != 0 {
				first, rest, sign = without(first, class), without(rest, class), -sign
			}
		}
		sum += sign * float64(len(first)) * math.Pow(float64(len(rest)), float64(length-1))
	}
	return sum
}

func without(text, class string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(class, r) {
			return -1
		}
		return r
	}, text)
}
