// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/klauspost/compress/zstd"
)

// work is what opening a key takes: 2^14 rounds of scrypt, in 16 MiB of memory. Passphrases are not guessed: they have at least 16 random
// bytes.
const work = 14

// window of what is compressed at a time, in bytes. It bounds the memory that a leader needs for it.
const window = 1 << 20

// A seal of objects. The zero value only compresses.
type seal struct{ identity *age.X25519Identity }

// newKey makes a key of objects, locked with a passphrase.
func newKey(passphrase string) (string, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return "", fmt.Errorf("cannot make a key: %w", err)
	}
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return "", fmt.Errorf("cannot make a key: %w", err)
	}
	to.SetWorkFactor(work)
	var out bytes.Buffer
	a := armor.NewWriter(&out)
	w, err := age.Encrypt(a, to)
	if err == nil {
		_, err = io.WriteString(w, identity.String())
		err = errors.Join(err, w.Close(), a.Close())
	}
	if err != nil {
		return "", fmt.Errorf("cannot make a key: %w", err)
	}
	return out.String(), nil
}

// openKey unlocks it. The error is an *age.NoIdentityMatchError when it was locked with another passphrase.
func openKey(locked, passphrase string) (*age.X25519Identity, error) {
	with, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, err
	}
	with.SetMaxWorkFactor(work)
	plain, err := age.Decrypt(armor.NewReader(strings.NewReader(locked)), with)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		return nil, err
	}
	return age.ParseX25519Identity(string(text))
}

// suffix of the names of objects.
func (s *seal) suffix() string {
	if s.identity != nil {
		return ".zst.age"
	}
	return ".zst"
}

// write what comes from a reader, compressed and encrypted.
func (s *seal) write(to io.Writer, from io.Reader) error {
	closers := []io.Closer{}
	if s.identity != nil {
		w, err := age.Encrypt(to, s.identity.Recipient())
		if err != nil {
			return err
		}
		to, closers = w, append(closers, w)
	}
	z, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return err
	}
	_, err = io.Copy(z, from)
	err = errors.Join(err, z.Close())
	for _, c := range closers {
		err = errors.Join(err, c.Close())
	}
	return err
}

// read what was written, as it was before. An error of the object itself is ErrDamaged.
func (s *seal) read(to io.Writer, from io.Reader) error {
	source := &failing{from: from}
	var in io.Reader = source
	if s.identity != nil {
		plain, err := age.Decrypt(in, s.identity)
		if err != nil {
			return source.or(err)
		}
		in = plain
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return source.or(err)
	}
	defer z.Close()
	sink := &writing{to: to}
	if _, err := io.Copy(sink, z); err != nil {
		if sink.err != nil {
			return sink.err
		}
		return source.or(err)
	}
	return nil
}

// failing remembers how reading failed, which is no damage.
type failing struct {
	from io.Reader
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

func (f *failing) or(err error) error {
	if f.err != nil {
		return f.err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// writing remembers how writing failed, which is no damage either.
type writing struct {
	to  io.Writer
	err error
}

func (w *writing) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}
