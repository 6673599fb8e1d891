// SPDX-License-Identifier: Apache-2.0

package ranks

import (
	"bytes"
	"io"
	"sync"
)

// maxPiece is how much of a line is kept until it is written, when lines of several ranks share one output.
const maxPiece = 64 << 10

// An output is shared by the ranks of a pod.
type output struct {
	mu  sync.Mutex
	out io.Writer
}

func (o *output) write(raw []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.out.Write(raw) // There is no other place to report that the log is gone.
}

// A pass writes what one rank wrote: unchanged if it is alone in its pod, else whole lines that begin with the rank's name. A line of
// more than 64 KiB is then written as several.
type pass struct {
	to     *output
	prefix string
	line   []byte
}

func (p *pass) write(chunk []byte) {
	if p.prefix == "" {
		p.to.write(chunk)
		return
	}
	for len(chunk) > 0 {
		end := bytes.IndexByte(chunk, '\n')
		part := chunk
		if end >= 0 {
			part = chunk[:end]
		}
		for len(part) > 0 {
			n := min(len(part), maxPiece-len(p.line))
			p.line = append(p.line, part[:n]...)
			part = part[n:]
			if len(p.line) == maxPiece {
				p.flush()
			}
		}
		if end < 0 {
			return
		}
		p.flush()
		chunk = chunk[end+1:]
	}
}

// flush what there is of a line.
func (p *pass) flush() {
	whole := make([]byte, 0, len(p.prefix)+len(p.line)+1)
	whole = append(append(append(whole, p.prefix...), p.line...), '\n')
	p.to.write(whole)
	p.line = p.line[:0]
}

// close writes the last line, which has no end.
func (p *pass) close() {
	if len(p.line) > 0 {
		p.flush()
	}
}
