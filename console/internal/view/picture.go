// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// A Picture is boxes in groups, with the numbers that an SVG needs.
type Picture struct {
	// Title in words, for those who do not see it.
	Title         string
	Width, Height int
	Groups        []Group
	Boxes         []Box
}

// A Group of boxes has a frame: a zone of members.
type Group struct {
	Name          string
	X, Y          int
	Width, Height int
}

// A Box is a member or a slot.
type Box struct {
	X, Y          int
	Width, Height int
	Tone          Tone
	// Lead marks the leader, or the live revision.
	Lead bool
	// Lines of text, the first is the name.
	Lines []Text
	// Bar is the width of the share of traffic; 0 is none.
	Bar int
	// BarY is where it is.
	BarY int
}

// A Text at its place.
type Text struct {
	X, Y  int
	Words string
}

// Measures of pictures, in units of the SVG.
const (
	boxWidth, boxHeight = 190, 112
	gap                 = 14
	frameTop            = 30
	lineHeight          = 20
	// letters that fit into a box.
	letters = 22
)

// members of a Database, by zone.
func members(d v1alpha1.Database) *Picture {
	all := d.Status.Members
	if len(all) == 0 {
		return nil
	}
	zones := map[string][]v1alpha1.MemberStatus{}
	var names []string
	for _, m := range all {
		zone := m.Zone
		if zone == "" {
			zone = "no zone"
		}
		if _, ok := zones[zone]; !ok {
			names = append(names, zone)
		}
		zones[zone] = append(zones[zone], m)
	}
	slices.Sort(names)
	p := &Picture{Title: fmt.Sprintf("%d members in %d zones, leader %s", len(all), len(names), orNone(d.Status.Leader))}
	x := gap
	for _, zone := range names {
		group := Group{Name: short(zone, 2*letters), X: x, Y: gap, Width: boxWidth + 2*gap, Height: frameTop + len(zones[zone])*(boxHeight+gap)}
		for i, m := range zones[zone] {
			lead := m.Name == d.Status.Leader
			role := m.Role
			if lead {
				role = "Leader"
			}
			p.add(Box{X: x + gap, Y: gap + frameTop + i*(boxHeight+gap), Tone: memberTone(m), Lead: lead},
				m.Name, orUnknown(role), orUnknown(m.State), lagOf(m, lead), m.Node)
		}
		p.Groups = append(p.Groups, group)
		p.Height = max(p.Height, group.Y+group.Height+gap)
		x += group.Width + gap
	}
	p.Width = x

	return p
}

func memberTone(m v1alpha1.MemberStatus) Tone {
	switch {
	case m.State == "Failed" || m.State == "Stopped" || m.State == "Unknown" || m.Lag == "FarBehind":
		return Bad
	case m.State == "Starting" || m.State == "" || m.Lag == "Behind" || m.PendingRestart:
		return Busy
	default:
		return Good
	}
}

func lagOf(m v1alpha1.MemberStatus, lead bool) string {
	switch {
	case lead:
		return "takes writes"
	case m.Lag == "":
		return "lag unknown"
	default:
		return "lag: " + m.Lag
	}
}

// slots of an Algorithm: the live revision and the one under test.
func slots(a v1alpha1.Algorithm) *Picture {
	r := a.Status.Revision
	if r == nil || r.Live == "" && r.Candidate == "" {
		return nil
	}
	weight, phase := int32(0), ""
	if ro := a.Status.Rollout; ro != nil {
		weight, phase = ro.Weight, string(ro.Phase)
	}
	live := int32(100)
	// While it bakes, the revision under test is the live one.
	tested := r.Candidate != "" && r.Candidate != r.Live && phase != string(v1alpha1.RolloutRolledBack)
	if tested {
		live = 100 - weight
	}
	p := &Picture{Title: fmt.Sprintf("live revision %s with %d %% of traffic", orNone(r.Live), live), Width: 2*boxWidth + 3*gap, Height: boxHeight + 2*gap}
	slot := "slot " + r.Slot
	if r.Slot == "" {
		slot = "all traffic"
	}
	if r.Live != "" {
		p.add(Box{X: gap, Y: gap, Tone: toneOf(string(a.Status.Phase)), Lead: true, Bar: int(live)}, "revision "+r.Live, "live, "+slot,
			fmt.Sprintf("%d %% of traffic", live))
	}
	other, what := r.Candidate, "under test"
	switch {
	case tested:
	case r.Candidate != "" && r.Candidate != r.Live:
		what = "rolled back"
	case r.Draining != "":
		other, what = r.Draining, "draining"
	default:
		p.Width = boxWidth + 2*gap

		return p
	}
	tone := Busy
	if what == "rolled back" {
		tone, weight = Bad, 0
	}
	if !tested {
		weight = 0
	}
	p.Title += fmt.Sprintf("; revision %s %s with %d %%", other, what, weight)
	p.add(Box{X: boxWidth + 2*gap, Y: gap, Tone: tone, Bar: int(weight)}, "revision "+other, what, fmt.Sprintf("%d %% of traffic", weight))

	return p
}

// add a box with its lines.
func (p *Picture) add(b Box, lines ...string) {
	b.Width, b.Height = boxWidth, boxHeight
	b.Bar, b.BarY = b.Bar*(boxWidth-2*gap)/100, b.Y+boxHeight-gap-6
	for i, words := range lines {
		b.Lines = append(b.Lines, Text{X: b.X + gap, Y: b.Y + 22 + i*lineHeight, Words: short(words, letters)})
	}
	p.Boxes = append(p.Boxes, b)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}

	return s
}

func orUnknown(s string) string { return strings.TrimSpace(orElse(s, "unknown")) }

func orElse(s, other string) string {
	if s == "" {
		return other
	}

	return s
}
