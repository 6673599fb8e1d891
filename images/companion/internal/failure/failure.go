// SPDX-License-Identifier: Apache-2.0

// Package failure explains why a model cannot be served: a reason in one word, the cause, and what to do about it.
package failure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// A Reason in one word. Analysis repeats it, and conditions of an Algorithm have it.
type Reason string

// All reasons there are.
const (
	NotFound       Reason = "ModelNotFound"
	Forbidden      Reason = "ModelForbidden"
	Unreachable    Reason = "ModelUnreachable"
	DigestMismatch Reason = "ModelDigestMismatch"
	SizeMismatch   Reason = "ModelSizeMismatch"
	NoSpace        Reason = "ModelNoSpace"
	Invalid        Reason = "ModelInvalid"
)

// A Failure is an error that is not worth another try. Its texts hold nothing that differs from try to try or from pod to pod,
// because they end up in the status of objects, and nothing secret.
type Failure struct { //nolint:errname // failure.Failure says it twice already.
	Reason Reason
	Cause  string
	Remedy string

	// Err is what led to it, if there is more to know.
	Err error
}

// New failure without another error behind it.
func New(reason Reason, cause, remedy string) *Failure {
	return &Failure{Reason: reason, Cause: cause, Remedy: remedy}
}

// Error is the cause.
func (f *Failure) Error() string { return f.Cause }

// Unwrap returns what led to it.
func (f *Failure) Unwrap() error { return f.Err }

// Is reports whether an error is a Failure with a reason.
func Is(err error, reason Reason) bool {
	var f *Failure
	return errors.As(err, &f) && f.Reason == reason
}

// Of returns the Failure that an error is or amounts to.
func Of(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	switch {
	case NoRoom(err):
		return &Failure{
			Reason: NoSpace, Cause: "the volume for models is full or its quota is used up",
			Remedy: "make spec.model.cache.resources.requests.storage larger or, without a cache, give nodes more disk", Err: err,
		}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &Failure{
			Reason: Invalid, Cause: plain(err), Err: err,
			Remedy: "let group 65532 write to the volume for models: use a storage class that honours fsGroup, or change its permissions",
		}
	}
	return &Failure{Reason: Invalid, Cause: plain(err), Remedy: "look into the log of the init container model", Err: err}
}

// NoRoom reports whether an error says that a disk is full.
func NoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// plain text of an error about a file: without the file's path, which holds a random number while it is incomplete.
func plain(err error) string {
	text := err.Error()
	var onPath *fs.PathError
	for inner := err; errors.As(inner, &onPath); inner = onPath.Err {
		text = strings.Replace(text, onPath.Error(), onPath.Err.Error(), 1)
	}
	var onLink *os.LinkError
	if errors.As(err, &onLink) {
		text = strings.Replace(text, onLink.Error(), onLink.Err.Error(), 1)
	}
	return text
}

// maxWords is what the kubelet keeps of a termination message, in bytes.
const maxWords = 4096

// LastWords of a program that handles a model and ends with an error: "Reason: cause: remedy", in one line of at most 4 KiB.
func LastWords(err error) string {
	f := Of(err)
	return line(fmt.Sprintf("%s: %s: %s", f.Reason, f.Cause, f.Remedy))
}

// PlainWords of a program that ends with an error which is not about a model: the error alone, in one line of at most 4 KiB.
func PlainWords(err error) string {
	return line(err.Error())
}

// line without control characters, which the kubelet keeps as it is.
func line(text string) string {
	words := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "")
	}
	return words
}
