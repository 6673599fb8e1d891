// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/password"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// What no schema has defaulted.
const (
	defaultLength = 32
	defaultKey    = v1alpha1.KeyPassword
)

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"

	// punctuation is what a URL takes as it is (RFC 3986 calls it unreserved) and a shell does, too, anywhere but at the start of
	// a word.
	punctuation = "-._~"
)

// An alphabet of values. None needs quoting in a shell, a URL, SQL or a configuration file. None leaves out letters that look
// alike: these values are not read aloud, and 16 of 62 characters are 95 bits where 16 of 56 would be 92.
type alphabet struct {
	// first may be at the start, rest everywhere else.
	first, rest string

	// classes: at least one character of each has to be there.
	classes []string
}

var alphabets = map[v1alpha1.Alphabet]alphabet{
	v1alpha1.AlphabetAlphanumeric: {first: lower + upper + digits, rest: lower + upper + digits},
	v1alpha1.AlphabetHexadecimal:  {first: digits + "abcdef", rest: digits + "abcdef"},
	v1alpha1.AlphabetPrintable: {
		// A shell takes ~ at the start for a home, and programs take - for an option.
		first:   lower + upper + digits,
		rest:    lower + upper + digits + punctuation,
		classes: []string{lower, upper, digits, punctuation},
	},
}

// keys of cr that hold generated values.
func keys(cr *v1alpha1.Credential) []v1alpha1.Key {
	if ks := cr.Spec.ForProvider.Keys; len(ks) > 0 {
		return ks
	}
	return []v1alpha1.Key{{Name: defaultKey}}
}

// has reports whether cr has a generated key of this name.
func has(cr *v1alpha1.Credential, name string) bool {
	return slices.ContainsFunc(keys(cr), func(k v1alpha1.Key) bool { return k.Name == name })
}

// generate a value of key k from a cryptographic source.
func generate(p v1alpha1.CredentialParameters, k v1alpha1.Key) ([]byte, error) {
	length := defaultLength
	for _, l := range []*int32{p.Length, k.Length} {
		if l != nil {
			length = int(*l)
		}
	}
	a, ok := alphabets[k.Alphabet]
	if !ok {
		a, ok = alphabets[p.Alphabet]
	}
	if !ok {
		a = alphabets[v1alpha1.AlphabetAlphanumeric]
	}

	// Values that lack a class are thrown away. Of 16 characters about half are, which costs each of the others one bit.
	for {
		first, err := password.Settings{CharacterSet: a.first, Length: 1}.Generate()
		if err != nil {
			return nil, fmt.Errorf("cannot read random bytes: %w", err)
		}
		rest, err := password.Settings{CharacterSet: a.rest, Length: length - 1}.Generate()
		if err != nil {
			return nil, fmt.Errorf("cannot read random bytes: %w", err)
		}
		if v := first + rest; a.holds(v) {
			return []byte(v), nil
		}
	}
}

// holds reports whether v has a character of each class.
func (a alphabet) holds(v string) bool {
	for _, c := range a.classes {
		if !strings.ContainsAny(v, c) {
			return false
		}
	}
	return true
}
