// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Service is what a pool of clients has to know of S3.
func Service() outside.Service[*Client] {
	return outside.Service[*Client]{New: New, Ask: ask, Explain: Explain}
}

// ask for the list of buckets. A user who may not have it is known to the server all the same, which is all that there is to
// learn.
func ask(ctx context.Context, c *Client) error {
	_, err := c.api.ListBuckets(ctx, &s3.ListBucketsInput{MaxBuckets: aws.Int32(1)})
	if Code(err) == "AccessDenied" || NotImplemented(err) {
		return nil
	}
	return err
}
