"""A complete small researcher in Python: it answers questions about three lighthouses.

It keeps the research contract, version 1, with the official MCP SDK: one tool called
research, evidence by hash as resources, gaps instead of errors, budgets, progress.

    pip install -r requirements.txt
    marchwarden researchers check --question "How tall is the Bell Rock Lighthouse?" python3 researcher.py
"""

import hashlib
import re
import time
import uuid
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp_types import ToolAnnotations
from pydantic import AfterValidator, BaseModel, Field

DOCUMENTS = {  # what is stored, cited and handed over; one sentence a line
    "bell-rock.txt": """The Bell Rock Lighthouse stands on a reef off the coast of Angus in Scotland.
The Bell Rock Lighthouse was built by Robert Stevenson between 1807 and 1810.
The tower of the Bell Rock Lighthouse is 35 metres tall.
""",
    "eddystone.txt": """The Eddystone Lighthouse stands on a reef south of Rame Head in Cornwall.
The present Eddystone Lighthouse was designed by James Douglass and first lit in 1882.
The tower of the present Eddystone Lighthouse is 49 metres tall.
""",
    "ar-men.txt": """The Ar-Men Lighthouse stands on a rock off the Ile de Sein in Brittany.
The Ar-Men Lighthouse was first lit in 1881 after 14 years of building.
""",
}
STORE = {hashlib.sha256(text.encode()).hexdigest(): text for text in DOCUMENTS.values()}
PRESETS = {"shallow": (5_000, 5), "balanced": (20_000, 10), "deep": (60_000, 20)}  # tokens, sources
IDLE = set("a an and are at by did do does for from how in is it of on or the to was what when where which who".split())


def not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


class Constraints(BaseModel):
    max_iterations: Annotated[int | None, Field(ge=1, le=20)] = None
    token_budget: Annotated[int | None, Field(ge=1000)] = None
    max_sources: Annotated[int | None, Field(ge=1)] = None
    source_filter: str = ""


server = MCPServer("lighthouses", version="1.0.0", log_level="WARNING")  # the log goes to standard error


@server.resource("marchwarden://evidence/sha256/{hex}", mime_type="text/plain")
def evidence(hex: str) -> str:
    """The stored document that a citation's content_hash names, byte for byte."""
    if hex not in STORE:
        raise ResourceNotFoundError("no document has that hash")
    return STORE[hex]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower())) - IDLE


def allowed(name: str, source_filter: str) -> bool:
    """A filter such as ".gov,.txt" names the only sources that may be used."""
    entries = [e.strip().lower().lstrip(".") for e in source_filter.split(",") if e.strip()]
    return not entries or any(name == e or name.endswith("." + e) for e in entries)


def search(asked: set[str], names: list[str], tokens: int, sources: int) -> tuple[list, float, int, int]:
    """The best sentences as (name, start, end), their match, the documents read and the tokens spent."""
    best, match, spent, read = [], 0.5, 0, 0  # less than half of the words is no match
    for name in names:
        cost = len(DOCUMENTS[name]) // 4  # what a model would be charged for reading it
        if read == sources or spent + cost > tokens:
            break
        read, spent = read + 1, spent + cost
        for sentence in re.finditer(r"[^\n]+", DOCUMENTS[name]):
            score = len(asked & words(sentence[0])) / max(len(asked), 1)
            if score > match:
                best, match = [], score
            if asked and score == match:
                best.append((name, sentence.start(), sentence.end()))
    return best, match if best else 0.0, read, spent


def cite(name: str, start: int, end: int) -> dict[str, Any]:
    data = DOCUMENTS[name].encode()
    first, last = (len(DOCUMENTS[name][:n].encode()) for n in (start, end))  # spans count bytes
    return {
        "source": "file", "locator": name, "raw_excerpt": data[first:last].decode(), "confidence": 0.9,
        "content_hash": "sha256:" + hashlib.sha256(data).hexdigest(), "span": {"start": first, "end": last},
    }


@server.tool(
    title="Research lighthouses",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    meta={"marchwarden/contract": "v1"},
)
async def research(
    ctx: Context,
    question: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(not_blank)],
    context: Annotated[str, Field(max_length=2000)] = "",
    depth: Literal["shallow", "balanced", "deep"] = "balanced",
    constraints: Constraints = Constraints(),
    resume: str = "",
) -> dict[str, Any]:
    """Answer a question about the lighthouses of Bell Rock, Eddystone and Ar-Men, with citations."""
    if resume:
        raise ToolError("resume: this researcher keeps no earlier runs; ask the question again")
    started = time.monotonic()
    tokens, sources = PRESETS[depth]
    tokens, sources = constraints.token_budget or tokens, constraints.max_sources or sources
    names = [name for name in DOCUMENTS if allowed(name, constraints.source_filter)]
    await ctx.report_progress(1, message=f"reading {len(names)} documents")
    best, match, read, spent = search(words(question), names, tokens, sources)
    gaps, exhausted = [], read < len(names)
    if exhausted:
        gaps.append({"topic": question, "category": "budget_exhausted", "detail": f"{len(names) - read} documents were not read"})
    if not best and not exhausted:
        gaps.append({"topic": question, "category": "source_not_found", "detail": "no document speaks of it"})
    citations = [cite(*place) for place in best]
    await ctx.report_progress(2, message=f"found {len(citations)} sentences")
    return {
        "answer": " ".join(f"{c['raw_excerpt']} [{n}]" for n, c in enumerate(citations, 1)) or "Nothing was found.",
        "citations": citations, "gaps": gaps, "discovery_events": [], "open_questions": [],
        "confidence": 0.7 * match,  # one origin, of unknown standing
        "confidence_factors": {
            "num_corroborating_sources": min(len(citations), 1), "source_authority": "low", "contradiction_detected": False,
            "query_specificity_match": match, "budget_exhausted": exhausted,
        },
        "cost_metadata": {
            "tokens_used": spent, "iterations_run": 1, "wall_time_sec": time.monotonic() - started,
            "budget_exhausted": exhausted, "model_id": "none",
        },
        "trace_id": str(uuid.uuid4()),
    }


if __name__ == "__main__":
    server.run()
