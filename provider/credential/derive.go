// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"bytes"
	"errors"
	"fmt"

	"golang.org/x/crypto/bcrypt"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/cachingsha2"
	"github.com/capstan-dev/capstan/provider/internal/password"
	"github.com/capstan-dev/capstan/provider/internal/scram"
)

// defaultIterations of SCRAM-SHA-256 are PostgreSQL's, whose values are meant for passwords of people: no number of them makes a
// difference to 95 random bits.
const defaultIterations = 4096

// longest value in bytes that bcrypt reads to its end.
const longest = 72

// A format of what is derived from values. What it makes differs each time, so what is there is kept as long as it fits.
type format struct {
	// make something that fits a value.
	make func(value []byte, d v1alpha1.Derivation) ([]byte, error)

	// fits reports whether derived was made from value, and as d asks for.
	fits func(derived, value []byte, d v1alpha1.Derivation) bool
}

var formats = map[v1alpha1.Format]format{
	v1alpha1.FormatSCRAM: {
		make: func(value []byte, d v1alpha1.Derivation) ([]byte, error) {
			if !password.Printable(value) {
				return nil, errors.New("it must be of printable ASCII characters for SCRAM-SHA-256")
			}
			v, err := scram.New(value, iterations(d))
			if err != nil {
				return nil, err
			}
			return []byte(v.String()), nil
		},
		fits: func(derived, value []byte, d v1alpha1.Derivation) bool {
			v, err := scram.Parse(derived)
			return err == nil && v.Iterations == iterations(d) && v.Fits(value)
		},
	},
	v1alpha1.FormatCachingSHA2: {
		make: func(value []byte, _ v1alpha1.Derivation) ([]byte, error) {
			if password.Check(value) != nil {
				return nil, errors.New("it must be of 1 to 256 printable ASCII characters for CachingSHA2")
			}
			v, err := cachingsha2.New(value)
			if err != nil {
				return nil, err
			}
			return []byte(v.String()), nil
		},
		fits: func(derived, value []byte, _ v1alpha1.Derivation) bool {
			v, err := cachingsha2.Parse(derived)
			return err == nil && v.Fits(value)
		},
	},
	v1alpha1.FormatBcrypt: {
		make: func(value []byte, d v1alpha1.Derivation) ([]byte, error) {
			if !hashable(value) {
				return nil, fmt.Errorf("it must have at most %d bytes, and none of them zero, for Bcrypt", longest)
			}
			return bcrypt.GenerateFromPassword(value, cost(d))
		},
		fits: func(derived, value []byte, d v1alpha1.Derivation) bool {
			c, err := bcrypt.Cost(derived)
			return err == nil && c == cost(d) && hashable(value) && bcrypt.CompareHashAndPassword(derived, value) == nil
		},
	},
}

// hashable values are read to their end by bcrypt, in C, too.
func hashable(value []byte) bool { return len(value) <= longest && bytes.IndexByte(value, 0) < 0 }

func iterations(d v1alpha1.Derivation) int {
	if d.Iterations == nil {
		return defaultIterations
	}
	return int(*d.Iterations)
}

func cost(d v1alpha1.Derivation) int {
	if d.Cost == nil {
		return bcrypt.DefaultCost
	}
	return int(*d.Cost)
}

// derive returns what fits value: was, if it does.
func (m *memory) derive(was, value []byte, d v1alpha1.Derivation) ([]byte, error) {
	f, ok := formats[d.Format]
	if !ok {
		return nil, fmt.Errorf("format %q is not known", d.Format)
	}
	how := fmt.Append(nil, d.Format, iterations(d), cost(d))
	if len(was) > 0 && (m.knows(m.trace(was, value, how)) || f.fits(was, value, d)) {
		m.learn(m.trace(was, value, how))
		return was, nil
	}
	is, err := f.make(value, d)
	if err != nil {
		return nil, err
	}
	m.learn(m.trace(is, value, how))
	return is, nil
}
