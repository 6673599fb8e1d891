// SPDX-License-Identifier: Apache-2.0

package download

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	one, two := sumOf([]byte("one")), sumOf([]byte("two"))
	known := Pins{
		{Tool: "other", Version: "v1", URL: "https://example.org/other", SHA256: one, Source: "elsewhere"},
		{Tool: "tool", Version: "v1", URL: "https://example.org/v1/tool", SHA256: one, Source: "elsewhere"},
		{Tool: "tool", Version: "v2", URL: "https://example.org/v2/tool", SHA256: one, Source: "elsewhere"},
	}
	fresh := func(sum string) Pins {
		return Pins{{Tool: "tool", Version: "v2", URL: "https://example.org/v2/tool", SHA256: sum, Source: "the publisher"}}
	}
	for name, tc := range map[string]struct {
		reason string
		fresh  Pins
		want   Pins
	}{
		"Confirmed": {"The publisher becomes the source of a sum that it confirms; pins of old versions are removed.", fresh(one), Pins{known[0], fresh(one)[0]}},
		"Differs":   {"A published file does not change: somebody has to look.", fresh(two), nil},
		"Nothing":   {"Pins of old versions are removed even without fresh ones.", nil, Pins{known[0], known[2]}},
	} {
		t.Run(name, func(t *testing.T) {
			before := append(Pins{}, known...)
			got, err := known.Merge("tool", "v2", tc.fresh)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.want != nil) {
				t.Errorf("%s\n%v: -want, +got:\n%s", tc.reason, err, diff)
			}
			if diff := cmp.Diff(before, known); diff != "" {
				t.Errorf("%s\nwhat was known has changed: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMarshal(t *testing.T) {
	pins := Pins{
		{Tool: "b", Version: "v1", Arch: "amd64", URL: "https://example.org/b", SHA256: sumOf([]byte("b")), Source: `a "quoted": source # 1`},
		{Tool: "a", Version: "v1.0", Arch: "arm64", URL: "https://example.org/a", SHA256: sumOf([]byte("a")), Source: "x"},
	}
	data, err := pins.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParsePins(data)
	if diff := cmp.Diff(Pins{pins[1], pins[0]}, got); diff != "" || err != nil {
		t.Errorf("what is written is read again, sorted: %v: -want, +got:\n%s", err, diff)
	}
	if data, err := (Pins{}).Marshal(); err != nil {
		t.Errorf("no pins cannot be written: %v\n%s", err, data)
	}
	pins[0].SHA256 = "cafe"
	if _, err := pins.Marshal(); err == nil {
		t.Error("half a sum is written")
	}
	embedded, err := ParsePins(embeddedPins)
	if err != nil {
		t.Fatal(err)
	}
	written, err := embedded.Marshal()
	if diff := cmp.Diff(string(embeddedPins), string(written)); diff != "" || err != nil {
		t.Errorf("pins.yaml is not as pin writes it, so the next pin would change more than it should: %v: -file, +written:\n%s", err, diff)
	}
}

func TestParsePins(t *testing.T) {
	for name, tc := range map[string]struct{ reason, data string }{
		"Field":     {"A mistyped field would be a pin without effect.", "- sha265: abc\n"},
		"Short":     {"Half a sum compares with nothing.", "- sha256: cafe\n"},
		"UpperCase": {"Sums are compared as text.", "- sha256: BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\n"},
		"NoList":    {"A page of a proxy is no list of pins.", "<html>"},
	} {
		t.Run(name, func(t *testing.T) {
			if pins, err := ParsePins([]byte(tc.data)); err == nil {
				t.Errorf("%s\ngot %v", tc.reason, pins)
			}
		})
	}
}
