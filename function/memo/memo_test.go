// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"encoding/binary"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		// asked one after the other, each of ten bytes.
		asked []string
		size  int
		err   error
		made  []string
	}{
		"Once": {
			reason: "What is known should not be made again, in any order.",
			asked:  []string{"a", "b", "a", "b"}, size: 10,
			made: []string{"a", "b"},
		},
		"Full": {
			reason: "With more bytes than its limit it should forget another one, and remember the latest.",
			asked:  []string{"a", "b", "c", "c"}, size: 10,
			made: []string{"a", "b", "c"},
		},
		"TooLarge": {
			reason: "What is larger than the memo should not be remembered.",
			asked:  []string{"a", "a"}, size: 26,
			made: []string{"a", "a"},
		},
		"Failed": {
			reason: "An error should be tried again.",
			asked:  []string{"a", "a"}, size: 10, err: errors.New("no"),
			made: []string{"a", "a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := New[string](25)
			var made []string
			for _, content := range tc.asked {
				got, err := m.Of([]byte(content), func() (string, int, error) {
					made = append(made, content)
					return "of " + content, tc.size, tc.err
				})
				if got != "of "+content || !errors.Is(err, tc.err) {
					t.Errorf("%s\nOf(%q): got %q, %v", tc.reason, content, got, err)
				}
			}
			if diff := cmp.Diff(tc.made, made); diff != "" {
				t.Errorf("%s\nOf(...): -want to be made, +made:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTurns has contents come in turns that together are a fifth more than fit, as all composite resources do after a restart of Crossplane:
// most of them should be known all the same.
func TestTurns(t *testing.T) {
	const turns, fit, all = 20, 1000, 1200
	m, made := New[int](fit), 0
	for range turns {
		for i := range all {
			if _, err := m.Of(binary.BigEndian.AppendUint32(nil, uint32(i)), func() (int, int, error) { made++; return i, 1, nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if most := turns * all / 2; made > most {
		t.Errorf("of %d contents %d were made again, want at most %d", turns*all, made, most)
	}
	if m.bytes != len(m.known) || m.bytes > fit {
		t.Errorf("it counts %d bytes, has %d, and may have %d", m.bytes, len(m.known), fit)
	}
}

// TestSeveral callers of one memo get what belongs to their content.
func TestSeveral(t *testing.T) {
	m := New[byte](8)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 1000 {
				content := byte((i + n) % 16)
				if got, err := m.Of([]byte{content}, func() (byte, int, error) { return content, 1, nil }); got != content || err != nil {
					t.Errorf("Of(%d): got %d, %v", content, got, err)
				}
			}
		})
	}
	all.Wait()
	if m.bytes != len(m.known) {
		t.Errorf("it counts %d bytes, and has %d", m.bytes, len(m.known))
	}
}
