// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"io"
	"sync"
)

// maxPiece is how much of a line is kept until it is written, when lines of several processes share one output.
const maxPiece = 64 << 10

// An Output is shared by the processes of a pod.
type Output struct {
	mu  sync.Mutex
	out io.Writer
}

// NewOutput that writes to another one.
func NewOutput(out io.Writer) *Output { return &Output{out: out} }

// Pass of one process. Without a prefix, which is for one that is alone in its pod, nothing is changed.
func (o *Output) Pass(prefix string) *Pass { return &Pass{to: o, prefix: prefix} }

func (o *Output) write(raw []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = o.out.Write(raw) // There is no other place to report that the log is gone.
}

// A Pass writes what one process wrote: unchanged if it is alone in its pod, else whole lines that begin with its name. A line of
// more than 64 KiB is then written as several.
type Pass struct {
	to     *Output
	prefix string
	line   []byte
}

func (p *Pass) write(chunk []byte) {
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
func (p *Pass) flush() {
	whole := make([]byte, 0, len(p.prefix)+len(p.line)+1)
	whole = append(append(append(whole, p.prefix...), p.line...), '\n')
	p.to.write(whole)
	p.line = p.line[:0]
}

// close writes the last line, which has no end.
func (p *Pass) close() {
	if len(p.line) > 0 {
		p.flush()
	}
}
