// SPDX-License-Identifier: Apache-2.0

package download

import (
	"errors"
	"fmt"
)

// Why a tool cannot be downloaded. Every error of Fetch except errors of this machine, such as a full disk, and of the context is
// one of these or a ChecksumError.
var (
	// ErrNotPublished says that no release file does what the compiled programs do.
	ErrNotPublished = errors.New("no release files are published for it")
	// ErrNotPinned says that nothing is known to verify the files with.
	ErrNotPinned = errors.New("no checksum is pinned")
	// ErrUnreachable says that the site does not answer.
	ErrUnreachable = errors.New("the site does not answer")
	// ErrNotServed says that the site answers with something else than the file.
	ErrNotServed = errors.New("the site does not serve the file")
	// ErrBroken says that the file ended too early, or that its bytes stopped.
	ErrBroken = errors.New("the transfer broke off")
	// ErrContent says that a file with the right checksum is not what the catalogue says.
	ErrContent = errors.New("the file has other content than expected")
)

// ChecksumError is a whole file that is not the pinned one.
type ChecksumError struct {
	URL string
	// Want and Got are SHA-256 sums.
	Want, Got string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s has the wrong checksum: expected SHA-256 %s, got %s", e.URL, e.Want, e.Got)
}
