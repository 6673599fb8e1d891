// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strings"
	"testing"
)

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\rb\r\n\x1b[31mred\x1b[0m\n\xffhalf \xc3"), 3)
	f.Add([]byte(strings.Repeat("x", 20000)+"\nend"), 4096)
	f.Fuzz(func(t *testing.T, output []byte, size int) {
		var s Splitter
		var tail Tail
		each := func(line string) {
			if line == "" || len(line) > 3*maxLine || strings.ContainsAny(line, "\r\n\x1b") || strings.ToValidUTF8(line, "") != line {
				t.Fatalf("line %q", line)
			}
			tail.Add(line)
		}
		size = max(1, min(size, 64<<10))
		for from := 0; from < len(output); from += size {
			s.Split(output[from:min(len(output), from+size)], each)
		}
		s.Flush(each)
		if got := tail.String(1500); len(got) > 1500 {
			t.Fatalf("the tail has %d bytes", len(got))
		}
	})
}
