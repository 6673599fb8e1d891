// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/crew"
)

func TestRead(t *testing.T) {
	long := strings.Repeat("x", MaxURI+1)
	for name, tc := range map[string]struct {
		reason string
		line   string
		fails  bool
	}{
		"Beat":           {reason: "What a member says.", line: `{"kind":"beat","run":1,"index":0,"attempt":0,"sequence":1}`},
		"Hello":          {reason: "A member without an attempt has -1.", line: `{"kind":"hello","run":1,"index":0,"attempt":-1,"greeting":{"ledger":{"attempt":-1}}}`},
		"Unknown kind":   {reason: "Both sides are of one image.", line: `{"kind":"sing","attempt":0}`, fails: true},
		"Unknown field":  {reason: "A field that is not understood may matter.", line: `{"kind":"done","attempt":0,"uid":"7"}`, fails: true},
		"Two objects":    {reason: "One message a line.", line: `{"kind":"done","attempt":0}{"kind":"done","attempt":0}`, fails: true},
		"Half":           {reason: "A connection that breaks within a line.", line: `{"kind":"done"`, fails: true},
		"No greeting":    {reason: "Its handler reads it.", line: `{"kind":"hello","attempt":-1}`, fails: true},
		"No ledger":      {reason: "Its handler reads it.", line: `{"kind":"start","attempt":0,"orders":{"groupRank":0,"master":0,"masterPort":1}}`, fails: true},
		"No sequence":    {reason: "Its echo would renew no lease.", line: `{"kind":"beat","attempt":0}`, fails: true},
		"Attempt":        {reason: "Attempts go up by one.", line: `{"kind":"done","attempt":1048577}`, fails: true},
		"Ledger":         {reason: "The same in a ledger, from which the next one is numbered.", line: `{"kind":"account","attempt":0,"ledger":{"attempt":-2}}`, fails: true},
		"Silence":        {reason: "Ranks do not write in the future.", line: `{"kind":"beat","attempt":0,"sequence":1,"silentMillis":-1}`, fails: true},
		"Step":           {reason: "Steps are counted from 0.", line: `{"kind":"progress","attempt":0,"progress":{"ranks":[{"rank":0,"step":-1}]}}`, fails: true},
		"Long URI":       {reason: "The record has a hundred of them.", line: `{"kind":"progress","attempt":0,"progress":{"checkpoints":[{"step":1,"uri":"` + long + `","at":"2026-11-26T12:00:00Z"}]}}`, fails: true},
		"Way":            {reason: "There are three.", line: `{"kind":"stop","attempt":0,"halt":{"how":"Gently"}}`, fails: true},
		"Orders":         {reason: "Group ranks begin with 0.", line: `{"kind":"start","attempt":0,"ledger":{"attempt":0},"orders":{"groupRank":-1,"master":0,"masterPort":1}}`, fails: true},
		"Longest line":   {reason: "Memory is bounded.", line: strings.Repeat(" ", MaxLine), fails: true},
		"Words of fault": {reason: "They are for people.", line: `{"kind":"fault","attempt":0,"fault":{"class":"User","rank":0,"message":"` + strings.Repeat("x", MaxWords+1) + `"}}`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewReader(strings.NewReader(tc.line + "\n")).Read(); (err != nil) != tc.fails {
				t.Errorf("%s\nerror %v", tc.reason, err)
			}
		})
	}
}

func TestTheLongestMessageFits(t *testing.T) {
	p := &Progress{Loss: strings.Repeat("<", MaxLoss)}
	for range maxRanks {
		p.Ranks = append(p.Ranks, RankProgress{Rank: 1 << 20, Step: 1 << 53, AgoMillis: 1 << 20})
	}
	for range MaxCheckpoints {
		p.Checkpoints = append(p.Checkpoints, crew.Checkpoint{Step: 1 << 53, URI: strings.Repeat("<", MaxURI)})
	}
	for name, m := range map[string]Message{
		"Progress": {Kind: Advanced, Progress: p},
		"Fault":    {Kind: Failed, Fault: &Fault{Message: strings.Repeat("<", MaxWords), Lines: strings.Repeat("<", maxLines)}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Write(&out, m); err != nil {
				t.Fatal(err)
			}
			got, err := NewReader(&out).Read()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(m, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"kind":"beat","run":1,"index":0,"attempt":0,"sequence":1}` + "\n"))
	f.Add([]byte(`{"kind":"start","attempt":0,"ledger":{"attempt":0},"orders":{"groupRank":0,"master":0,"masterPort":1}}` + "\n{"))
	for _, seed := range []string{
		`{"kind":"hello","run":1,"index":0,"attempt":-1,"greeting":{"ledger":{"attempt":-1}}}`,
		`{"kind":"progress","attempt":3,"progress":{"ranks":[{"rank":0,"step":7,"agoMillis":3}],"of":9,"loss":"nan","checkpoints":[{"step":7,"uri":"/c/7","at":"2026-11-26T12:00:00Z"}]}}`,
		`{"kind":"fault","attempt":0,"fault":{"class":"User","rank":-1,"message":"\u0000half \ud800","lines":"a\nb"}}`,
		`{"kind":"account","attempt":0,"ledger":{"attempt":0,"begun":"2026-11-26T12:00:00.123456789+05:30"}}`,
		`{"kind":"stop","attempt":0,"halt":{"how":"Abort"}}`, `{"kind":"finish","attempt":0,"verdict":{"code":64,"message":"x"}}`,
		"GET / HTTP/1.1\r\n", "\x16\x03\x01", "[]", "null", `{"kind":"done","attempt":0}` + "\xff",
	} {
		f.Add([]byte(seed + "\n"))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		reader := NewReader(bytes.NewReader(raw))
		for {
			m, err := reader.Read()
			if err != nil {
				return
			}
			var out bytes.Buffer
			if err := Write(&out, m); err != nil {
				continue // It was short only as it was written there.
			}
			again, err := NewReader(&out).Read()
			if err != nil {
				t.Fatalf("%+v cannot be read again: %v", m, err)
			}
			if diff := cmp.Diff(m, again); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
