// SPDX-License-Identifier: Apache-2.0

package points

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/capstan-dev/capstan/apis/members"
)

func TestRestorable(t *testing.T) {
	point := func(name, stanza, at string) Point {
		return Point{RestorePoint: members.RestorePoint{Name: name, Stanza: stanza, At: at}}
	}
	p := Points{stanza: "orders-17", all: []Point{
		point("expired", "orders-17", "2026-11-01T00:00:00Z"),
		point("other", "orders-16", "2026-11-20T00:00:00Z"),
		point("old", "orders-17", "2026-11-10T00:00:00Z"),
	}}
	for i := range reported {
		p.all = append(p.all, point("v"+strconv.Itoa(i), "orders-17", "2026-11-20T00:00:00Z"))
	}
	for name, tc := range map[string]struct {
		reason, earliest, asked string
		first                   string
		n                       int
	}{
		"Last":    {"The last ones are told.", "2026-11-05T00:00:00Z", "v3", "v0", reported},
		"Asked":   {"So is the one that is asked for, however old.", "2026-11-05T00:00:00Z", "old", "old", reported + 1},
		"Expired": {"One whose backup is gone cannot be restored.", "2026-11-05T00:00:00Z", "expired", "v0", reported},
		"Other":   {"Neither can one of other data.", "2026-11-05T00:00:00Z", "other", "v0", reported},
		"None":    {"Without a backup none can.", "", "v3", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := p.Restorable(tc.earliest, tc.asked)
			if len(got) != tc.n || tc.n > 0 && got[0].Name != tc.first {
				t.Errorf("%s: %d are told, the first of %+v", tc.reason, len(got), got)
			}
		})
	}
}

// A fake is an engine and its bucket.
type fake struct {
	// made counts the points that the server made, and there are those that are written down.
	made  int
	there []Point
	// away is why nothing can be read or written, and archive why a point is not in the archive.
	away, archive error
}

func (f *fake) Make(_ context.Context, p *Point) error {
	f.made++
	p.At, p.LSN = "2026-11-26T12:00:00Z", strconv.Itoa(f.made)
	return nil
}

func (f *fake) Archived(context.Context, *Point) error { return f.archive }

func (f *fake) Read(_ context.Context, all *[]Point) error {
	*all = slices.Clone(f.there)
	return f.away
}

func (f *fake) Change(ctx context.Context, all *[]Point, change func()) error {
	if err := f.Read(ctx, all); err != nil {
		return err
	}
	change()
	f.there = slices.Clone(*all)
	return nil
}

func TestName(t *testing.T) {
	given := func(name, stanza string) Point {
		return Point{RestorePoint: members.RestorePoint{Name: name, Stanza: stanza, At: "2026-11-20T00:00:00Z"}}
	}
	ready := members.BackupReport{Asked: true, Label: "first"}
	for name, tc := range map[string]struct {
		reason string
		name   string
		facts  members.BackupReport
		there  []Point
		// tries are what happens before each of them.
		tries []func(f *fake)
		wait  string
		names string
		made  int
	}{
		"Named":    {"The archive has it.", "v1", ready, nil, []func(*fake){nil}, "", "v1", 1},
		"Nothing":  {"None is requested.", "", ready, nil, []func(*fake){nil}, "", "", 0},
		"Unknown":  {"What is wrong with the repository is reported elsewhere.", "v1", members.BackupReport{}, nil, []func(*fake){nil}, "", "", 0},
		"NoBackup": {"A restore begins with one.", "v1", members.BackupReport{Asked: true}, nil, []func(*fake){nil}, "first backup", "", 0},
		"Given":    {"A name is given once, also by an earlier leader.", "v1", ready, []Point{given("v1", "orders-1")}, []func(*fake){nil}, "", "v1", 0},
		"Other":    {"The data of another generation has it.", "v1", ready, []Point{given("v1", "orders-0")}, []func(*fake){nil}, "choose another name", "v1", 0},
		"Away":     {"Nobody knows whether the name was given.", "v1", ready, nil, []func(*fake){func(f *fake) { f.away = errors.New("away") }}, "away", "", 0},
		"Waits": {"It is made once while the archive lacks it.", "v1", ready, nil, []func(*fake){
			func(f *fake) { f.archive = ErrWaits }, nil,
		}, "waits for the archive", "", 1},
		"Dropped": {"One that the archive never has is made again.", "v1", ready, nil, []func(*fake){
			func(f *fake) { f.archive = ErrDropped }, func(f *fake) { f.archive = nil },
		}, "", "v1", 2},
		"Meanwhile": {"What another leader wrote down stays.", "v1", ready, nil, []func(*fake){
			func(f *fake) { f.archive = ErrWaits }, func(f *fake) { f.archive, f.there = nil, []Point{given("v0", "orders-1")} },
		}, "", "v0 v1", 1},
		"First": {"The first one of a name counts.", "v1", ready, nil, []func(*fake){
			func(f *fake) { f.archive = ErrWaits }, func(f *fake) { f.archive, f.there = nil, []Point{given("v1", "orders-1")} },
		}, "", "v1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			f, p := &fake{there: tc.there}, Points{}
			for _, before := range tc.tries {
				if before != nil {
					before(f)
				}
				p.Name(t.Context(), slog.New(slog.DiscardHandler), Request{Path: "/o", Stanza: "orders-1", Name: tc.name, Facts: tc.facts}, f, f)
			}
			var names []string
			for _, one := range f.there {
				names = append(names, one.Name)
			}
			if got := strings.Join(names, " "); got != tc.names || f.made != tc.made || !strings.Contains(p.Wait(), tc.wait) || tc.wait == "" && p.Wait() != "" {
				t.Errorf("%s It has %q, made %d, and waits because %q", tc.reason, got, f.made, p.Wait())
			}
		})
	}
}
