// SPDX-License-Identifier: Apache-2.0

package gtid

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	one = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	two = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
)

func parse(t *testing.T, text string) Set {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
	}{
		"Empty":    {"A server that has executed nothing says nothing.", "", ""},
		"Newlines": {"MySQL breaks the line after each comma.", two + ":1,\n" + one + ":1-5", one + ":1-5," + two + ":1"},
		"Merged":   {"Intervals that meet are one.", one + ":4-6:1-3:8", one + ":1-6:8"},
		"Blocks":   {"Each member of a group numbers a block of its own.", one + ":1-5215:1000005-1005046", one + ":1-5215:1000005-1005046"},
		"Tags":     {"A tag has numbers of its own, and holds for the intervals behind it.", one + ":1-2:payroll:1-3:7:b:9", one + ":1-2:b:9:payroll:1-3:7"},
		"Case":     {"Hexadecimal digits may be upper case.", "3E11FA47-71CA-11E1-9E33-C80AA9429562:1", one + ":1"},
		"Twice":    {"A source may come twice.", one + ":1," + one + ":2", one + ":1-2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parse(t, tc.text).String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	for _, text := range []string{"x", one, one + ":", one + ":0", one + ":5-3", one + ":tag", one + ":1-2-3", one + ":9223372036854775807"} {
		if s, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, which is no set", text, s)
		}
	}
}

func TestSets(t *testing.T) {
	cases := map[string]struct {
		reason, a, b, union, minus string
		contains                   bool
		count                      int64
	}{
		"Same":    {"A set contains itself.", one + ":1-5", one + ":1-5", one + ":1-5", "", true, 5},
		"More":    {"What is behind is contained.", one + ":1-9", one + ":1-5", one + ":1-9", one + ":6-9", true, 9},
		"Less":    {"A longer set is not contained, however many more transactions of another kind there are.", one + ":1-5," + two + ":1-100", one + ":1-6", one + ":1-6," + two + ":1-100", two + ":1-100", false, 105},
		"Hole":    {"A hole counts.", one + ":1-3:5-9", one + ":4", one + ":1-9", one + ":1-3:5-9", false, 8},
		"Inside":  {"What is cut out of the middle leaves two ends.", one + ":1-9", one + ":4-5", one + ":1-9", one + ":1-3:6-9", true, 9},
		"Tag":     {"The same number with a tag is another transaction.", one + ":1", one + ":t:1", one + ":1:t:1", one + ":1", false, 1},
		"Nothing": {"Nothing is contained in nothing.", "", "", "", "", true, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := parse(t, tc.a), parse(t, tc.b)
			got := []any{a.Union(b).String(), a.Minus(b).String(), a.Contains(b), a.Count()}
			if diff := cmp.Diff([]any{tc.union, tc.minus, tc.contains, tc.count}, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzSets: what is written is read as the same set, and the operations agree with each other.
func FuzzSets(f *testing.F) {
	f.Add(one+":1-5:7,"+two+":t:3", one+":2-3:6")
	f.Add("", one+":1-5215:1000005-1005046")
	f.Fuzz(func(t *testing.T, x, y string) {
		a, err1 := Parse(x)
		b, err2 := Parse(y)
		if err1 != nil || err2 != nil {
			t.Skip()
		}
		if again, err := Parse(a.String()); err != nil || again.String() != a.String() {
			t.Fatalf("%q is read as %q (%v)", a, again, err)
		}
		union, rest := a.Union(b), a.Minus(b)
		switch {
		case !union.Contains(a), !union.Contains(b):
			t.Errorf("the union %q of %q and %q lacks something", union, a, b)
		case rest.Union(b).String() != union.String():
			t.Errorf("%q without %q is %q: with it that is not the union", a, b, rest)
		case !rest.Empty() && b.Contains(rest), a.Contains(b) != b.Minus(a).Empty():
			t.Errorf("%q and %q contradict each other", a, b)
		}
	})
}

func TestFromAndText(t *testing.T) {
	const server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	raw := []byte(`"` + server + `:1-5:payroll:7"`)
	var s Set
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(s); err != nil || string(got) != string(raw) {
		t.Errorf("a set as JSON: got %s, %v", got, err)
	}
	if !s.From(server) || s.From("00000000-71ca-11e1-9e33-c80aa9429562") || (Set{}).From(server) {
		t.Error("a set has transactions of those who numbered them, and of nobody else")
	}
	if other := parse(t, two+":1"); !s.FromMore(other) || s.FromMore(other.Union(s)) || s.FromMore(parse(t, server+":9")) {
		t.Error("a set is from more than another one if someone numbered transactions of it and none of the other")
	}
	if err := json.Unmarshal([]byte(`"nonsense"`), &s); err == nil || s.Empty() {
		t.Errorf("nonsense changed the set to %s: %v", s, err)
	}
}
