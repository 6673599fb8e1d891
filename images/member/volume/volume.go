// SPDX-License-Identifier: Apache-2.0

// Package volume reports whether the data volume is fit for a member: whose it is, which version wrote it, and how full it is.
package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/durable"
)

// A Problem is why a member cannot start on this volume with this image. Waiting does not help: a person has to decide.
type Problem struct { //nolint:errname // It is one for a person.
	// Reason in one word, and Message with the cause and what to do.
	Reason, Message string
}

func (p *Problem) Error() string { return p.Reason + ": " + p.Message }

// mark is what the first start leaves on a volume.
type mark struct {
	// Identity of the Database.
	Identity string `json:"identity"`
	// Version is the major version that the volume was made for. The data itself shows which version it has today.
	Version string `json:"version"`
}

// Claim makes sure that a volume belongs to the Database of an identity. A volume without data and without a mark is taken. The
// error is a *Problem when the volume is another's.
func Claim(markFile, data, identity, version string) error {
	var m mark
	found, err := durable.ReadJSON(markFile, &m)
	switch {
	case err != nil:
		return fmt.Errorf("cannot read %s, which says whose the volume is: %w", markFile, err)
	case found && m.Identity != identity:
		return &Problem{members.ReasonVolumeOfAnother, fmt.Sprintf("the volume belongs to the Database of the identity %s, and this one has %s: "+
			"give the volume back to its Database, or remove the volume if its data is not needed", m.Identity, identity)}
	case found:
		return nil
	}
	empty, err := Empty(data)
	if err != nil {
		return err
	}
	if !empty {
		return &Problem{members.ReasonVolumeOfAnother, "the volume has data that no Database of this kind made: remove the volume if its data is not needed"}
	}
	if err := durable.WriteJSON(markFile, mark{Identity: identity, Version: version}); err != nil {
		return fmt.Errorf("cannot write whose the volume is: %w", err)
	}
	return nil
}

// Owner of a volume is the identity of the Database that it belongs to; "" while it belongs to none.
func Owner(markFile string) (string, error) {
	var m mark
	if _, err := durable.ReadJSON(markFile, &m); err != nil {
		return "", fmt.Errorf("cannot read %s, which says whose the volume is: %w", markFile, err)
	}
	return m.Identity, nil
}

// Empty reports whether there is no data: no folder, or nothing in it.
func Empty(data string) (bool, error) {
	entries, err := os.ReadDir(data)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the data folder: %w", err)
	}
	return len(entries) == 0, nil
}

// CheckImage for the programs that a member needs. The error is a *Problem when one is missing.
func CheckImage(programs ...string) error {
	for _, p := range programs {
		info, err := os.Stat(p)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			continue
		}
		return &Problem{members.ReasonImageUnsuitable, fmt.Sprintf("the image has no program %s: use an image of the platform that has this version of the server", p)}
	}
	return nil
}
