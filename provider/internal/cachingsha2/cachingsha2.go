// SPDX-License-Identifier: Apache-2.0

// Package cachingsha2 makes verifiers of MySQL's caching_sha2_password: what a server keeps in place of a password. It cannot be
// used to log in. It is made by hand because libraries of SHA-crypt cut salts at 16 characters, as the specification demands, and
// MySQL's have 20.
package cachingsha2

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/provider/internal/password"
)

const (
	// rounds of new verifiers, as many as MySQL makes.
	rounds = 5000

	// saltLength is in characters.
	saltLength = 20

	// alphabet of salts and digests. Nothing of it needs an escape in SQL, and $ would end the salt.
	alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// A Verifier of a password.
type Verifier struct {
	salt, digest string
	rounds       int
}

// stored is the form in mysql.user: A for SHA-256-crypt, thousands of rounds in hexadecimal digits, 20 characters of salt, and 43 of
// the digest. Servers make salts of any 7-bit characters but zero and $.
var stored = regexp.MustCompile(`^\$A\$([0-9A-Fa-f]{3})\$([\x01-\x23\x25-\x7f]{20})([./0-9A-Za-z]{43})$`)

var errNoVerifier = errors.New("not a verifier of caching_sha2_password")

// New verifier of a password, with a salt of its own.
func New(secret []byte) (Verifier, error) {
	if err := password.Check(secret); err != nil {
		return Verifier{}, err
	}
	random := make([]byte, saltLength)
	_, _ = rand.Read(random)
	for i, b := range random {
		random[i] = alphabet[b&63]
	}
	salt := string(random)
	return Verifier{salt: salt, digest: crypt(secret, random, rounds), rounds: rounds}, nil
}

// Parse reads a verifier as MySQL stores it.
func Parse(text []byte) (Verifier, error) {
	m := stored.FindSubmatch(text)
	if m == nil {
		return Verifier{}, errNoVerifier
	}
	thousands, err := strconv.ParseUint(string(m[1]), 16, 16)
	if err != nil || thousands == 0 {
		return Verifier{}, errNoVerifier
	}
	return Verifier{salt: string(m[2]), digest: string(m[3]), rounds: int(thousands) * 1000}, nil
}

// Fits reports whether v was made from a password, with as many rounds as New makes.
func (v Verifier) Fits(secret []byte) bool {
	return v.rounds == rounds && subtle.ConstantTimeCompare([]byte(crypt(secret, []byte(v.salt), rounds)), []byte(v.digest)) == 1
}

// String is v as MySQL stores it, and takes it in place of a password.
func (v Verifier) String() string {
	return fmt.Sprintf("$A$%03X$%s%s", v.rounds/1000, v.salt, v.digest)
}

// crypt is the digest of SHA-256-crypt (U. Drepper, "Unix crypt using SHA-256 and SHA-512", steps 1 to 22), without its prefix and
// with the whole salt.
func crypt(secret, salt []byte, rounds int) string {
	b := sha256.New()
	b.Write(secret)
	b.Write(salt)
	b.Write(secret)
	alternate := b.Sum(nil)

	a := sha256.New()
	a.Write(secret)
	a.Write(salt)
	a.Write(repeated(alternate, len(secret)))
	for n := len(secret); n > 0; n >>= 1 {
		if n&1 == 1 {
			a.Write(alternate)
		} else {
			a.Write(secret)
		}
	}
	sum := a.Sum(nil)

	dp := sha256.New()
	for range secret {
		dp.Write(secret)
	}
	p := repeated(dp.Sum(nil), len(secret))
	ds := sha256.New()
	for range 16 + int(sum[0]) {
		ds.Write(salt)
	}
	s := repeated(ds.Sum(nil), len(salt))

	for i := range rounds {
		c := sha256.New()
		if i&1 == 1 {
			c.Write(p)
		} else {
			c.Write(sum)
		}
		if i%3 != 0 {
			c.Write(s)
		}
		if i%7 != 0 {
			c.Write(p)
		}
		if i&1 == 1 {
			c.Write(sum)
		} else {
			c.Write(p)
		}
		sum = c.Sum(sum[:0])
	}
	return encode(sum)
}

// repeated block, as often as it takes to have n bytes.
func repeated(block []byte, n int) []byte {
	out := make([]byte, 0, n+len(block))
	for len(out) < n {
		out = append(out, block...)
	}
	return out[:n]
}

// encode a digest: three bytes are four characters, the low bits first. Which three is the order of the specification.
func encode(sum []byte) string {
	var out strings.Builder
	group := func(a, b, c byte, characters int) {
		w := uint32(a)<<16 | uint32(b)<<8 | uint32(c)
		for range characters {
			out.WriteByte(alphabet[w&63])
			w >>= 6
		}
	}
	for _, i := range [][3]int{{0, 10, 20}, {21, 1, 11}, {12, 22, 2}, {3, 13, 23}, {24, 4, 14}, {15, 25, 5}, {6, 16, 26}, {27, 7, 17}, {18, 28, 8}, {9, 19, 29}} {
		group(sum[i[0]], sum[i[1]], sum[i[2]], 4)
	}
	group(0, sum[31], sum[30], 3)
	return out.String()
}
