// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

func (h *Hook) request(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, h.Method, h.URL, http.NoBody)
	if err != nil {
		return fmt.Errorf("cannot make the request: %w", err)
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err // It repeats the URL.
		}
		if o := (*net.OpError)(nil); errors.As(err, &o) && o.Op == "dial" {
			return Unreached(fmt.Errorf("cannot connect: %w", err))
		}
		return fmt.Errorf("the request failed: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 512))
	if answer.StatusCode == h.ExpectedStatus || h.ExpectedStatus == 0 && answer.StatusCode/100 == 2 {
		return nil
	}
	return fmt.Errorf("the answer has status %d: %q", answer.StatusCode, body)
}
