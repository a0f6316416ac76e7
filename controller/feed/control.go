package feed

import (
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/cachepolicy/feed"
	"github.com/weirproxy/weir/cachepolicy/feed/feedpb"
)

// maxReplicaName bounds the name of a replica, in bytes.
const maxReplicaName = 253

// connect is the control stream of one replica.
func (s *Server) connect(stream grpc.ServerStream) error {
	first, err := receive(stream)
	if err != nil {
		return err
	}
	if first.Replica == "" || len(first.Replica) > maxReplicaName {
		return status.Error(codes.InvalidArgument, "the first report names the replica")
	}
	r, err := s.join(first, time.Now())
	if err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	s.log.Info("Replica connected", "replica", r.Name, "version", r.Version)
	defer func() {
		s.leave(r)
		s.log.Info("Replica disconnected", "replica", r.Name)
	}()
	if err := s.report(r, first); err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	ended := make(chan error, 1)
	go func() { ended <- s.listen(stream, r) }()
	for {
		select {
		case err := <-ended:
			return err
		case c := <-r.commands:
			frame, err := feedpb.Frame(c)
			if err != nil {
				return status.Error(codes.Internal, err.Error())
			}
			if err := stream.SendMsg(frame); err != nil {
				return err
			}
		case <-r.replaced:
			return status.Error(codes.Aborted, "another process of this name has connected")
		case <-s.ctx.Done():
			return status.Error(codes.Unavailable, "the controller stops")
		}
	}
}

// listen takes reports in until the stream ends, as it does when its handler
// returns.
func (s *Server) listen(stream grpc.ServerStream, r *replica) error {
	for {
		said, err := receive(stream)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.report(r, said); err != nil {
			return status.Error(codes.ResourceExhausted, err.Error())
		}
	}
}

func receive(stream grpc.ServerStream) (*feed.Report, error) {
	var frame wrapperspb.BytesValue
	if err := stream.RecvMsg(&frame); err != nil {
		return nil, err
	}
	var said feed.Report
	if err := feedpb.ReadFrame(&frame, &said); err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "report: %v", err)
	}
	return &said, nil
}
