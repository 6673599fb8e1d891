// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"context"
	"errors"
	"io"
	"time"
)

// idle is how long a server may send nothing before the connection counts as broken.
const idle = time.Minute

// Open returns what a server has from an offset on. Errors that are worth another try are TemporaryErrors.
type Open func(ctx context.Context, offset int64) (io.ReadCloser, error)

// A Stream reads what a server has, and continues where the connection broke.
type Stream struct {
	ctx   context.Context //nolint:containedctx // A Reader has no other way to be told.
	open  Open
	at    int64
	size  int64
	body  io.ReadCloser
	trial *trial
	count func(n int)
}

// NewStream of this many bytes, or of an unknown number if size is negative. Each number of bytes that comes is counted.
func NewStream(ctx context.Context, p Retry, open Open, size int64, count func(n int)) *Stream {
	return &Stream{ctx: ctx, open: open, size: size, trial: p.trial(), count: count}
}

// Start opens the stream, which Read would do by itself.
func (s *Stream) Start() error {
	for s.body == nil {
		body, err := s.begin()
		if err == nil {
			s.body = body
			break
		}
		if err := s.trial.pause(s.ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// Read on. An error is final.
func (s *Stream) Read(p []byte) (int, error) {
	for {
		if s.size >= 0 && s.at == s.size {
			return 0, io.EOF
		}
		if err := s.Start(); err != nil {
			return 0, err
		}
		if left := s.size - s.at; s.size >= 0 && int64(len(p)) > left {
			p = p[:left]
		}
		n, err := s.body.Read(p)
		if n > 0 {
			s.at += int64(n)
			s.count(n)
			s.trial.calm()

			// If there was an error, the next Read has it again.
			return n, nil
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF) && s.size < 0:
			return 0, io.EOF
		case errors.Is(err, io.EOF):
			err = io.ErrUnexpectedEOF
		}
		_ = s.body.Close()
		s.body = nil
		if err := s.trial.pause(s.ctx, Temporary(err)); err != nil {
			return 0, err
		}
	}
}

// Close the connection.
func (s *Stream) Close() error {
	if s.body == nil {
		return nil
	}
	return s.body.Close()
}

// begin at the offset that was reached, on a connection that ends when it goes silent.
func (s *Stream) begin() (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	body, err := s.open(ctx, s.at)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	return &alert{ReadCloser: body, ctx: ctx, cancel: cancel, timer: time.AfterFunc(idle, func() { cancel(errSilent) })}, nil
}

var errSilent = errors.New("the server has sent nothing for a minute")

// alert ends a connection that goes silent. While there is no reader, it waits for nothing.
type alert struct {
	io.ReadCloser

	ctx    context.Context //nolint:containedctx // It is that of the connection.
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (a *alert) Read(p []byte) (int, error) {
	a.timer.Reset(idle)
	n, err := a.ReadCloser.Read(p)
	a.timer.Stop()
	if err != nil && errors.Is(context.Cause(a.ctx), errSilent) {
		err = errSilent
	}
	return n, err
}

func (a *alert) Close() error {
	a.timer.Stop()
	a.cancel(nil)
	return a.ReadCloser.Close()
}

// Skip makes a body that begins at its start one that begins at an offset, for servers that cannot.
func Skip(body io.ReadCloser, offset int64) (io.ReadCloser, error) {
	if _, err := io.CopyN(io.Discard, body, offset); err != nil {
		_ = body.Close()
		return nil, Temporary(err)
	}
	return body, nil
}
