package mcpkit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// LineConn is a connection of one JSON-RPC message a line, for one session of a server or of a
// client. It leaves its two streams open: they are the caller's. Unlike the SDK's own, it goes
// on after a line that is no message, if its reader does.
type LineConn struct {
	messages chan jsonrpc.Message // closed after the last one
	readErr  error                // why messages was closed; set before that

	closeOnce sync.Once
	closed    chan struct{}

	writeMu sync.Mutex // guards out: one message at a time
	out     io.Writer
}

// TakeLine makes sense of a line that is not blank, nil if it was over the limit: it gives the
// message in it, or what to answer right away, or neither to pass the line over. An error ends the
// connection.
type TakeLine func(line []byte) (msg jsonrpc.Message, answer []byte, err error)

// NewLineConn begins to read lines of at most limit bytes.
func NewLineConn(in io.Reader, out io.Writer, limit int, take TakeLine) *LineConn {
	c := &LineConn{messages: make(chan jsonrpc.Message), closed: make(chan struct{}), out: out}
	go c.scan(in, limit, take)
	return c
}

// Connect makes a connection its own transport.
func (c *LineConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID is empty: a stream has one session.
func (c *LineConn) SessionID() string { return "" }

// Close ends reading and writing.
func (c *LineConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return nil
}

// scan reads lines until in ends, a line cannot be taken or the connection is closed.
func (c *LineConn) scan(in io.Reader, limit int, take TakeLine) {
	defer close(c.messages)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(r, limit)
		if text := bytes.TrimSpace(line); (line == nil || len(text) > 0) && !c.deliver(take(text)) {
			return
		}
		if err != nil {
			c.readErr = err
			return
		}
	}
}

// deliver passes on what was made of a line, and says whether to go on.
func (c *LineConn) deliver(msg jsonrpc.Message, answer []byte, err error) bool {
	if err == nil && answer != nil {
		if err = c.writeLine(answer); err != nil {
			err = fmt.Errorf("answer a malformed line: %w", err)
		}
	}
	switch {
	case err != nil:
		c.readErr = err
		return false
	case msg == nil:
		return true
	}
	select {
	case c.messages <- msg:
		return true
	case <-c.closed:
		return false
	}
}

// Read gives the next message. io.EOF says that there are no more.
func (c *LineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.closed:
		return nil, io.EOF
	case msg, more := <-c.messages:
		if !more {
			return nil, c.readErr
		}
		return msg, nil
	}
}

// Write sends one message. It waits for a reader that does not read.
func (c *LineConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	return c.writeLine(data)
}

// writeLine sends one line in one piece, unless the connection is closed.
func (c *LineConn) writeLine(data []byte) error {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	select {
	case <-c.closed:
		return io.ErrClosedPipe
	default:
	}
	_, err := c.out.Write(append(data, '\n'))
	return err
}

// readLine reads up to the next line end or the end of r, and gives nil for a line over the limit. It
// never keeps more than the limit and the reader's buffer.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	line, tooLong := []byte{}, false
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > limit; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
