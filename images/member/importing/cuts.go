// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"slices"

	"github.com/capstan-dev/capstan/apis/members"
)

// Phases of a cut-over.
const (
	CutSkipped = "Skipped" // the Database was created with the id
	CutDrained = "Drained" // everything is here; what connects both sides goes
	CutDone    = "Done"
)

// A Cut is a cut-over by its id.
type Cut struct {
	ID      string `json:"id"`
	Phase   string `json:"phase"`
	Message string `json:"message,omitempty"`
	Gap     int64  `json:"gap,omitempty"`
}

// Cuts are all that an import knows of.
type Cuts []Cut

// in a phase, the cut-over.
func (c Cuts) in(phase string) *Cut {
	if i := slices.IndexFunc(c, func(one Cut) bool { return one.Phase == phase }); i >= 0 {
		return &c[i]
	}
	return nil
}

// Ended is the cut-over that has ended the import; nil for none.
func (c Cuts) Ended() *Cut { return c.in(CutDone) }

// Drained is the cut-over that has everything here; nil for none.
func (c Cuts) Drained() *Cut { return c.in(CutDrained) }

// Skipped id: the Database was created with it.
func (c Cuts) Skipped() string {
	if one := c.in(CutSkipped); one != nil {
		return one.ID
	}
	return ""
}

// Settled is what there is to report of an import that has ended, or whose end is recorded outside; nil while it continues. begun reports whether
// something was copied.
func (c Cuts) Settled(i members.Import, begun bool) *members.ImportReport {
	switch done := c.Ended(); {
	case done != nil:
		return &members.ImportReport{State: members.ImportCutOver, CutOver: done.ID, GapSeconds: done.Gap, Message: done.Message, Copied: 100}
	case i.Ended && begun && c.Drained() == nil:
		return &members.ImportReport{State: members.ImportFailing, Message: "consumers have logins although no cut-over has ended the import, so rows may be missing here, " +
			"and the source is not left: make another Database, or compare both sides yourself"}
	case i.Ended && c.Drained() == nil:
		return &members.ImportReport{State: members.ImportCutOver, Copied: 100, Message: "the import had ended before this data was made, which is not imported again"}
	}
	return nil
}
