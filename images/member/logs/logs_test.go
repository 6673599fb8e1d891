// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// marked lines begin with a word and a colon; a tab continues, and "+" adds a part. What begins with "(" ends with ")".
func marked(line string, last *Entry) *Entry {
	if begun, rest, finished := strings.Cut(line, ")"); strings.HasPrefix(begun, "(") {
		if !finished {
			return Unfinished(")")
		}
		line = rest
	}
	switch severity, text, found := strings.Cut(line, ": "); {
	case last != nil && strings.HasPrefix(line, "\t"):
		last.Continue(line[1:])
	case last != nil && strings.HasPrefix(line, "+"):
		last.Add("detail", line[1:])
	case found:
		return &Entry{Level: Level(severity), Message: text, Source: "test"}
	}
	return nil
}

func TestWriter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		writes []string
		want   []map[string]any
	}{
		"Lines": {
			"Each is an entry.",
			[]string{"ERROR: a\nLOG: b\n"},
			[]map[string]any{{"level": "ERROR", "msg": "a", "source": "test"}, {"level": "INFO", "msg": "b", "source": "test"}},
		},
		"Parts": {
			"What a program writes at once is one entry.",
			[]string{"ERROR: a\n\tb\n+c\n\td\n"},
			[]map[string]any{{"level": "ERROR", "msg": "a\nb", "source": "test", "parts": map[string]any{"detail": "c\nd"}}},
		},
		"Cut": {
			"A line may come in pieces.", []string{"WARN", "ING: a", "\n"}, []map[string]any{{"level": "WARN", "msg": "a", "source": "test"}},
		},
		"Late": {
			"What comes later is an entry of its own, because the one before was written at once.",
			[]string{"LOG: a\n", "\tb\n"},
			[]map[string]any{{"level": "INFO", "msg": "a", "source": "test"}, {"level": "INFO", "msg": "\tb", "source": "output"}},
		},
		"JSON": {
			"The program of a member writes JSON itself.",
			[]string{"LOG: a\n{\"msg\":\"b\"}\n{no\n"},
			[]map[string]any{{"level": "INFO", "msg": "a", "source": "test"}, {"msg": "b"}, {"level": "INFO", "msg": "{no", "source": "output"}},
		},
		"Unfinished": {
			"Nothing in a name with line breaks is a line of its own, also when it comes in pieces.",
			[]string{"LOG: a\n(b\n{\"msg\":\"forged\"}\n", "\nERROR: forged\n)LOG: c\n"},
			[]map[string]any{
				{"level": "INFO", "msg": "a", "source": "test"},
				{"level": "INFO", "msg": "c", "source": "test"},
			},
		},
		"NeverFinished": {
			"It has a bound.",
			[]string{"(" + strings.Repeat("\n", longest) + "\nLOG: a\n"},
			[]map[string]any{
				{"level": "INFO", "msg": "(" + strings.Repeat("\n", longest), "source": "output"},
				{"level": "INFO", "msg": "a", "source": "test"},
			},
		},
		"Hostile": {
			"Text cannot end its line of JSON.",
			[]string{"LOG: \"}\\ \x00\x1b\xff\n"},
			[]map[string]any{{"level": "INFO", "msg": "\"}\\ \x00\x1b\ufffd", "source": "test"}},
		},
		"Long": {
			"A line has a bound.",
			[]string{"LOG: " + strings.Repeat("x", longest), strings.Repeat("y", longest) + "\nLOG: b\n"},
			[]map[string]any{{"level": "INFO", "msg": strings.Repeat("x", longest-5) + " …", "source": "test"}, {"level": "INFO", "msg": "b", "source": "test"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			w := &Writer{To: &out, Read: marked}
			for _, b := range tc.writes {
				if n, err := w.Write([]byte(b)); n != len(b) || err != nil {
					t.Fatalf("wrote %d: %v", n, err)
				}
			}
			if diff := cmp.Diff(tc.want, decoded(t, out.String())); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestContinued: a statement of many lines has a bound, too, and takes no time that grows with its square: the server waits meanwhile.
func TestContinued(t *testing.T) {
	var out strings.Builder
	w := &Writer{To: &out, Read: marked}
	_, _ = w.Write([]byte("ERROR: a"))
	for range 1 << 10 {
		_, _ = w.Write([]byte(strings.Repeat("\n\txxxxxxxxxxxxxx", 1<<10)))
	}
	_, _ = w.Write([]byte("\nLOG: b\n"))
	for _, one := range decoded(t, out.String()) {
		if text, _ := one["msg"].(string); len(text) > 2*longest {
			t.Errorf("an entry has %d bytes", len(text))
		}
	}
	if !strings.Contains(out.String(), " …\"") || !strings.HasSuffix(out.String(), "\"msg\":\"b\",\"source\":\"test\"}\n") {
		t.Errorf("the end is %q", out.String()[max(0, out.Len()-100):])
	}
}

func decoded(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(text) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		delete(one, "time")
		all = append(all, one)
	}
	return all
}

func TestPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	file, err := Pipe(w, marked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("ERROR: a\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if got := decoded(t, line); err != nil || got[0]["msg"] != "a" {
		t.Errorf("got %v, %v", got, err)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add("LOG: a\n\tb\n", "c\n")
	f.Add("{}\n", "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		var out strings.Builder
		w := &Writer{To: &out, Read: marked}
		_, _ = w.Write([]byte(a))
		_, _ = w.Write([]byte(b))
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) || !strings.HasSuffix(line, "\n") {
				t.Errorf("%q is not a line of JSON", line)
			}
		}
	})
}
