// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line of the protocol, in bytes, with its end.
const MaxLine = 64 << 10

// A Reader reads messages, one a line.
type Reader struct {
	in *bufio.Reader
}

// NewReader of messages. It keeps no more than MaxLine bytes.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, MaxLine)} }

// Read a message. An error means that the connection is of no more use: what follows a broken line cannot be believed.
func (r *Reader) Read() (Message, error) {
	line, err := r.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return Message{}, fmt.Errorf("a line is longer than %d bytes", MaxLine)
	case errors.Is(err, io.EOF) && len(line) > 0:
		return Message{}, io.ErrUnexpectedEOF
	case err != nil:
		return Message{}, err
	}
	return parse(line)
}

// parse a line strictly: one object, no unknown fields, nothing after it.
func parse(line []byte) (Message, error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var m Message
	if err := decoder.Decode(&m); err != nil {
		return Message{}, fmt.Errorf("cannot understand a message: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Message{}, errors.New("cannot understand a message: more follows on its line")
	}
	return m, m.check()
}

// Write a message as a line.
func Write(out io.Writer, m Message) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("cannot write a message: %w", err)
	}
	if len(raw) >= MaxLine {
		return fmt.Errorf("a message of the kind %s is longer than %d bytes", m.Kind, MaxLine)
	}
	_, err = out.Write(append(raw, '\n'))
	return err
}
